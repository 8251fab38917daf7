package fault

// Meaning is the longer word on a code, for the page that explains it: when a
// caller meets it, and what to do then.
type Meaning struct {
	When string
	Do   string
}

// Meaning gives what the documentation says of the code. A test holds that every
// code of the catalogue has one.
func (c Code) Meaning() Meaning { return meanings[c] }

var meanings = map[Code]Meaning{
	InvalidRequest: {
		"A field, parameter or header is missing, unknown, duplicated, out of range or of the wrong type. The message names the field and the rule.",
		"Fix the request. Retrying it unchanged returns the same error.",
	},
	MissingAPIKey: {
		"The request has no Authorization header, or it doesn't start with \"Bearer \".",
		"Send the secret key as \"Authorization: Bearer psr_…\". Check that no proxy strips the header.",
	},
	InvalidAPIKey: {
		"The key doesn't belong to this server, or its checksum doesn't match because it was truncated or mistyped.",
		"Copy the complete secret again. If you lost it, create a new key. Secrets are shown only once.",
	},
	ExpiredAPIKey: {
		"The key's expiry date, or its overlap period after a rotation, has passed.",
		"Create a new key, or use the replacement from the rotation.",
	},
	RevokedAPIKey: {
		"Someone revoked the key in the dashboard, or archived its application. It stopped working on every server at that moment.",
		"Create a new key and replace the old one. If the application is archived, restore it: its keys then work again.",
	},
	PermissionDenied: {
		"The key is valid, but its permissions don't include this operation. The message names the missing permission.",
		"Use a key that has the permission. Existing keys don't gain new permissions, so create another one.",
	},
	PermissionNotHeld: {
		"Someone tried to grant a key or a member a permission they don't have themselves.",
		"Leave the permission out, or ask someone who has it.",
	},
	UnsupportedKeyKind: {
		"The key starts with pub_live_ or pub_test_. Publishable keys are reserved and can't call this API.",
		"Call the API from your server with a secret key.",
	},
	PathNotFound: {
		"No operation has this path. Common causes are a missing /v1, a trailing slash, or an identity with a slash that isn't percent-encoded.",
		"Compare the path with the reference. Encode identities once: a/b is a%2Fb.",
	},
	CreditNotFound: {
		"The request refers to a credit that doesn't exist in this application. Each application has its own catalog.",
		"Create the credit first, or check that your API key belongs to the right application.",
	},
	AlertRuleNotFound: {
		"The application has no alert rule with this key.",
		"Create the rule with PUT, or list the rules to find its key.",
	},
	FeatureNotFound: {
		"The request refers to a feature that doesn't exist in this application. Each application has its own catalog.",
		"Create the feature first, or check that your API key belongs to the right application.",
	},
	WalletNotFound: {
		"This identity has no wallet yet. Checks don't create one.",
		"Create the wallet with a deposit or POST /v1/wallets, or treat its balance as zero.",
	},
	EventNotFound: {
		"No accepted or deduplicated event has this id in the application. Denied usage leaves no event.",
		"Check the id and the application of your API key. If tracking timed out, send the event again with the same id.",
	},
	APIKeyNotFound: {
		"The key ID doesn't belong to this application.",
		"Look for the key in the application it was created in.",
	},
	PlanNotFound: {
		"The request refers to a plan that doesn't exist in this application. Each application has its own catalog.",
		"Create the plan first, or check that your API key belongs to the right application.",
	},
	SubscriptionNotFound: {
		"The identity has no subscription to change or cancel, or its last one has ended.",
		"Start one with a subscription checkout. You can start a free plan with a change.",
	},
	MethodNotAllowed: {
		"The path exists, but doesn't support this method.",
		"Use a method listed in the Allow header.",
	},
	AlreadyExists: {
		"A credit, feature or plan with this key already exists in the application.",
		"Use the existing one, update it with PATCH, or choose another key. In a setup script, treat this error as success.",
	},
	RevisionConflict: {
		"The expectedRevision you sent is not the current one: the object was changed after you read it.",
		"Read it again, review the changes, and retry with the new revision.",
	},
	LastOwner: {
		"The change would leave the organization without an owner.",
		"Make another member an owner, then try again.",
	},
	Archived: {
		"Someone changes an application or an organization that is archived, or archives an organization that still has active applications.",
		"Restore it under Settings in the dashboard, or archive the applications first.",
	},
	APIKeyNotRotatable: {
		"The key is revoked or expired, or was already rotated.",
		"Rotate its replacement, or create a new key.",
	},
	PricingLocked: {
		"A plan, an active subscription, or a pending change or checkout limits this feature or overrides its price. A new price would change what customers bought.",
		"Create a new feature with the new price, or remove the feature from the plans first.",
	},
	DeduplicationLocked: {
		"The feature has been used, and its usage is counted by the current period.",
		"Create a new feature with the other period.",
	},
	BillingPeriodLocked: {
		"The wallet has accepted usage, which is counted by the current period.",
		"Set the period before the first use. It can't be changed for this wallet.",
	},
	BalanceOverflow: {
		"The new balance would exceed 19 digits of nanocredits. Nothing was changed.",
		"Deposit less, or check that the amount was sent in the right unit.",
	},
	TooManyBalances: {
		"The wallet holds 100 different credits and can't hold another. Nothing was changed.",
		"Use fewer kinds of credit for one identity.",
	},
	InsufficientBalance: {
		"The charge is larger than the balance of the feature's credit, or a transfer is larger than the sender's balance. Nothing was charged or recorded.",
		"Add credits to the wallet, then send the same event id again. Run a check before expensive work.",
	},
	FeatureLimitExceeded: {
		"The plan includes a limited quantity of this feature per period and blocks overage. Usage that doesn't fit completely is declined.",
		"Wait for the next period, send a smaller quantity, or switch to a plan with a larger allowance. A check shows what remains.",
	},
	GroupConflict: {
		"Some events of the group are recorded and others are not, so this is not a retry of the group that recorded them. Nothing was charged.",
		"Send exactly the events of the original group to retry it. Use new event ids for a new group.",
	},
	SubscriptionInactive: {
		"The subscription is past due, unpaid or paused, and its plan limits this feature.",
		"Ask the customer to pay the overdue invoice in the billing portal, or resume the paused subscription. Features without an allowance still work from the balance.",
	},
	SubscriptionExists: {
		"You opened a checkout for an identity that already has an active subscription.",
		"Change the plan instead of opening a checkout.",
	},
	AlreadyOnPlan: {
		"You requested the plan the subscription is already on, and there is no scheduled or pending change to undo.",
		"Nothing to do: the subscription is already on this plan.",
	},
	PlanInactive: {
		"The plan is no longer offered.",
		"Choose an active plan, or activate it.",
	},
	PlanNotSynced: {
		"The plan is new or was changed, and is not synced with the payment provider yet.",
		"Wait until syncStatus is synced. If it is error, see syncError and retry in the dashboard.",
	},
	CancellationScheduled: {
		"The subscription cancels at the end of its period, so its plan can't be changed.",
		"Undo the cancellation first, then change the plan.",
	},
	PaymentHold: {
		"The subscription has an outstanding payment, so its plan can't be changed. While its status is incomplete, that is the first payment, and it can't be canceled either.",
		"Send the customer to the billing portal to pay, then change the plan. If the status is incomplete, wait until the first payment has succeeded or failed.",
	},
	TopupsDisabled: {
		"The identity's subscription doesn't allow top-ups.",
		"Switch to a plan with top-ups. Subscriptions keep the terms they started with, even if the plan has changed since.",
	},
	NotificationNotFound: {
		"No notification of this application has the ID, or it is older than the retention period.",
		"Check the ID. A notification that was just committed is there a moment later.",
	},
	WebhookEndpointNotFound: {
		"No webhook endpoint of this application has the ID. It may have been deleted.",
		"List the endpoints with GET /v1/webhook-endpoints.",
	},
	FeedExpired: {
		"The notifications after the number in \"after\" are older than the retention period and were deleted.",
		"Your copy has missed changes. Read the feed without \"after\" and note \"last\", copy the current state of what you mirror, then continue after that number.",
	},
	PaymentNotRefundable: {
		"The payment is already refunded, disputed, or not known to the payment provider as a charge.",
		"Open the payment at the payment provider. A refund that is made there removes the credits too.",
	},
	CatalogChanged: {
		"A credit, feature or plan was created or updated after the preview. Nothing was applied.",
		"Preview the catalog again, review the changes, and apply it with the new version.",
	},
	CatalogTooLarge: {
		"The application has, or would get, more than 500 credits, features or plans, or more than 20,000 limits, grants and multipliers in its plans.",
		"Read and update the items one by one with their own operations.",
	},
	TooManyEndpoints: {
		"The application has 20 webhook endpoints.",
		"Delete an endpoint you no longer need, or send several types to one.",
	},
	ReversalTooLarge: {
		"The amount is more than what earlier reversals left of the charge. Nothing was changed.",
		"Read the event: its reversals show what was returned. To reverse the rest, leave out the amount.",
	},
	EventNotReversible: {
		"The event was deduplicated, so it cost nothing, or reversals have already returned its whole charge.",
		"Read the event. Of a deduplicated event, reverse the one that deduplicatedFrom names.",
	},
	TransferToSelf: {
		"A transfer names the same identity as sender and receiver. Nothing was changed.",
		"Name two different identities.",
	},
	IdentityTaken: {
		"A wallet can't be renamed to an identity that already has a wallet. Nothing was changed.",
		"Choose another identity. To merge two wallets, move the credits with POST /v1/transfers.",
	},
	WalletInUse: {
		"A wallet can't be erased while money may still be collected for it: it has a paid subscription, an open checkout or a payment in progress. Nothing was changed.",
		"Cancel the subscription and wait until it has ended, or end it at the payment provider. Open checkouts expire within 24 hours. Then erase the wallet.",
	},
	IdempotencyConflict: {
		"The idempotency key was already used with a different body. The first request stands.",
		"To retry, send exactly the first body. For a new request, use a new key.",
	},
	OperationInProgress: {
		"Another payment operation for the same identity is in progress: this request sent twice, another change, or one that a stopped server left behind.",
		"Send the same request again in a few seconds with the same idempotency key. It runs only once.",
	},
	BodyTooLarge: {
		"The body is larger than the operation accepts: 1 MiB for a batch of events or a catalog, 64 KiB for a group of events, 16 KiB for everything else.",
		"Send less data: split a batch into smaller ones.",
	},
	UnsupportedMedia: {
		"The Content-Type is not application/json, or the body is compressed.",
		"Send plain JSON with \"Content-Type: application/json\".",
	},
	AmountRequired: {
		"The feature's pricing mode is callback, and the request has no amountNanocredits.",
		"Send the amount to charge.",
	},
	AmountNotAccepted: {
		"The feature has a fixed price, and the request has amountNanocredits.",
		"Leave the amount out, or create a feature with callback pricing.",
	},
	ChargeOutOfRange: {
		"Cost times quantity exceeds 19 digits of nanocredits.",
		"Send a smaller quantity, and check the feature's cost for a wrong unit.",
	},
	UsageOutOfRange: {
		"The quantity used in one period would exceed 9223372036854775807, the largest number that its counter can hold.",
		"Send a smaller quantity, or count in a larger unit.",
	},
	BillingPeriodMissing: {
		"The feature is charged once per billing period, and this wallet has neither its own period nor a subscription.",
		"Set the wallet's billing period, or use a calendar period for the feature.",
	},
	CallbackMultiplier: {
		"Features with callback pricing can't have price overrides in a plan.",
		"Remove the override from the plan, or keep the feature's price fixed.",
	},
	CurrencyMismatch: {
		"A subscription keeps the currency it started in, and the plan has another.",
		"Choose a plan in the subscription's currency, or cancel and start a new subscription.",
	},
	AmountTooSmall: {
		"The payment provider has a minimum charge, which depends on the currency.",
		"Use a larger amount.",
	},
	AmountNotChargeable: {
		"The amount is more precise than the currency or its smallest chargeable step.",
		"Round the amount to what the currency supports.",
	},
	ProviderInUse: {
		"You tried to connect another payment account while the current one has subscriptions or open checkouts. The new account wouldn't know about them.",
		"Cancel those subscriptions and let the checkouts expire. You can save a new key for the same account at any time.",
	},
	ProviderRefused: {
		"The payment provider rejected the request, for example because of an invalid return URL. Nothing was charged.",
		"Fix the problem named in the message, then send the request again with a new idempotency key.",
	},
	PaymentsNotConfigured: {
		"The application is live and has no payment account.",
		"Connect one in the application's settings. Test applications include a sandbox.",
	},
	RateLimited: {
		"The key exceeded its requests per second. Nothing was done.",
		"Wait for the seconds in Retry-After, then send the same request. Spread out bursts, or ask the operator for a higher limit.",
	},
	Overloaded: {
		"The server is handling as many requests as it can. This one was not processed.",
		"Wait for the seconds in Retry-After, then send the same request.",
	},
	ProviderUnavailable: {
		"The payment provider did not respond in time. The outcome is unknown for now. Purser will check and complete the operation.",
		"Send the same request again with the same idempotency key.",
	},
	InternalError: {
		"Something went wrong on the server. The cause is in its log under the request ID.",
		"Send the same request again with the same id or idempotency key: it never runs twice. If it keeps failing, report the X-Request-Id.",
	},
}
