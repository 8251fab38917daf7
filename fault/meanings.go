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
		"The body, a parameter or a header breaks a rule of the interface: a field is missing, unknown, given twice, out of its bounds or of another type. The message names the field and the rule.",
		"Correct the request. Sending it again unchanged gives the same answer.",
	},
	MissingAPIKey: {
		"The request has no Authorization header, or one that does not begin with \"Bearer \".",
		"Send the secret key as \"Authorization: Bearer psr_…\". A proxy that removes the header gives this answer too.",
	},
	InvalidAPIKey: {
		"The key is not one of this server's, or its checksum does not fit: it was cut, or mistyped, or belongs to another installation.",
		"Copy the secret again, whole. If it is lost, make a new key; a secret is shown only once.",
	},
	ExpiredAPIKey: {
		"The key had an expiry date, or an overlap after a rotation, and it has passed.",
		"Make a new key, or use the replacement that the rotation made.",
	},
	RevokedAPIKey: {
		"Someone revoked the key in the dashboard. No server takes it from that moment on.",
		"Make a new key and put it where the old one was.",
	},
	PermissionDenied: {
		"The key is good, but its preset or its own set of permissions does not include this operation. The message names what is missing.",
		"Use a key that has the permission. Existing keys do not gain new permissions: make another one.",
	},
	PermissionNotHeld: {
		"A person tried to give a key or a member a permission that they do not have themselves.",
		"Leave the permission out, or ask somebody who has it.",
	},
	UnsupportedKeyKind: {
		"The key begins with pub_live_ or pub_test_. Such publishable keys are reserved, and cannot call this interface.",
		"Call it from your server, with a secret key.",
	},
	PathNotFound: {
		"No operation has this path. A missing /v1, a slash at the end, or an identity with a slash that was not percent-encoded leads here.",
		"Compare the path with the reference. Encode identities once: a/b is a%2Fb.",
	},
	CreditNotFound: {
		"The request names a credit that this application does not have. Each application has its own catalog.",
		"Make the credit first, or check that the key belongs to the application you mean.",
	},
	FeatureNotFound: {
		"The request names a feature that this application does not have. Each application has its own catalog.",
		"Make the feature first, or check that the key belongs to the application you mean.",
	},
	WalletNotFound: {
		"No wallet was made for this identity yet. A check makes none.",
		"Make it with a deposit or POST /v1/wallets, or take it as empty.",
	},
	APIKeyNotFound: {
		"The key's id is not one of this application's.",
		"Look for the key in the list of the application that it was made in.",
	},
	PlanNotFound: {
		"The request names a plan that this application does not have. Each application has its own catalog.",
		"Make the plan first, or check that the key belongs to the application you mean.",
	},
	SubscriptionNotFound: {
		"The identity has no subscription that could be changed or cancelled, or its last one has ended.",
		"Start one with a subscription checkout. A free plan can be started with a change.",
	},
	MethodNotAllowed: {
		"The path exists, but not with this method.",
		"Use a method that the Allow header lists.",
	},
	AlreadyExists: {
		"A credit, feature or plan with this key exists already in the application.",
		"Take the one that is there, change it with PATCH, or choose another key. In a setup script this answer means that the step is done.",
	},
	RevisionConflict: {
		"The expectedRevision that you sent is not the current one: somebody changed the thing since you read it.",
		"Read it again, look at what changed, and repeat your change with the new revision.",
	},
	LastOwner: {
		"The change would leave the organization without an owner.",
		"Make another member an owner, then repeat it.",
	},
	APIKeyNotRotatable: {
		"The key is revoked or expired, or was rotated already.",
		"Rotate its replacement, or make a new key.",
	},
	PricingLocked: {
		"A plan, a subscription that still runs, or a change or checkout that waits, limits or multiplies this feature. Another price would change what was sold.",
		"Make a new feature with the new price, or take the feature out of the plans first.",
	},
	DeduplicationLocked: {
		"The feature has been used, and its uses are counted by the present period.",
		"Make a new feature with the other period.",
	},
	BillingPeriodLocked: {
		"The wallet has an accepted use, and its uses are counted by the present period.",
		"Set the period before the first use. For this wallet it stays.",
	},
	BalanceOverflow: {
		"The sum of the balance and what would come in has more than 19 digits of nanocredits. Nothing was changed.",
		"Deposit less, or look for an amount that was sent in the wrong unit.",
	},
	TooManyBalances: {
		"The wallet holds 100 different credits, and this would be another one. Nothing was changed.",
		"Use fewer kinds of credit for one identity.",
	},
	InsufficientBalance: {
		"The charge is larger than the balance of the feature's credit. Nothing was charged or recorded.",
		"Have the wallet funded, then send the same event id again. Check first, to know before the work is done.",
	},
	FeatureLimitExceeded: {
		"The plan includes so much of this feature in a period and blocks what goes beyond it. A use that does not fit whole is refused.",
		"Wait for the next period, send a smaller quantity, or move to a plan with a larger allowance. A check shows what remains.",
	},
	SubscriptionInactive: {
		"The subscription is past due, unpaid or paused, and the feature is one that its plan limits.",
		"Have the payment settled; the billing portal does that. Features without an allowance still work from the balance.",
	},
	SubscriptionExists: {
		"A checkout was asked for an identity whose subscription still runs.",
		"Change its plan instead of opening a checkout.",
	},
	AlreadyOnPlan: {
		"The change names the plan that the subscription is on, and no queued or pending change could be called off.",
		"Nothing needs to be done.",
	},
	PlanInactive: {
		"The plan is no longer offered.",
		"Choose an active plan, or activate it.",
	},
	PlanNotSynced: {
		"The plan is new or was changed, and the payment provider does not have it yet as it is now.",
		"Wait for syncStatus to be synced. If it is error, syncError says why; the dashboard can try again.",
	},
	CancellationScheduled: {
		"The subscription ends with its period, so its plan cannot be changed.",
		"Undo the cancellation first, then change the plan.",
	},
	PaymentHold: {
		"A payment of the subscription is outstanding, so its plan cannot be changed.",
		"Send the holder to the billing portal to pay, then change the plan.",
	},
	TopupsDisabled: {
		"The terms of the identity's subscription allow no top-ups.",
		"Move to a plan with top-ups. Subscriptions keep the terms that they started with, also when the plan has changed since.",
	},
	IdempotencyConflict: {
		"The idempotency key was used before, with another body. The first request stands.",
		"To retry, repeat the first body exactly. For a new request, choose a new key.",
	},
	OperationInProgress: {
		"Another payment operation for the same identity is in progress: this request sent twice, another change, or one that a stopped server left behind.",
		"Send the same request again in a few seconds, with the same idempotency key. It is carried out once.",
	},
	BodyTooLarge: {
		"The body is larger than 16 KiB.",
		"Send less. One request carries one event.",
	},
	UnsupportedMedia: {
		"The Content-Type is not application/json, or the body is compressed.",
		"Send plain JSON with \"Content-Type: application/json\".",
	},
	AmountRequired: {
		"The feature's pricing mode is callback, and the use came without amountNanocredits.",
		"Send the amount to be charged with the use.",
	},
	AmountNotAccepted: {
		"The feature has a fixed price, and the use came with amountNanocredits.",
		"Leave the amount out, or make a feature that is priced by callback.",
	},
	ChargeOutOfRange: {
		"Cost times quantity has more than 19 digits of nanocredits.",
		"Send a smaller quantity, and check the feature's cost for a wrong unit.",
	},
	UsageOutOfRange: {
		"The quantity used in one period would pass 9007199254740991, the most that is counted exactly.",
		"Send a smaller quantity, or count in a larger unit.",
	},
	BillingPeriodMissing: {
		"The feature is charged once a billing period, and this wallet has neither a period of its own nor a subscription.",
		"Set the wallet's billing period, or use a calendar period for the feature.",
	},
	CallbackMultiplier: {
		"A price that comes with each use cannot be multiplied by a plan. The feature has the one, and something asked for the other.",
		"Take the multiplier out of the plan, or keep the feature's price fixed.",
	},
	CurrencyMismatch: {
		"A subscription stays in the currency that it started in, and the plan is priced in another.",
		"Choose a plan in the subscription's currency, or cancel and start anew.",
	},
	AmountTooSmall: {
		"Payment providers do not charge amounts below a minimum, which depends on the currency.",
		"Ask for a larger amount.",
	},
	AmountNotChargeable: {
		"The currency has no unit as small as the amount asks for, or is charged only in larger steps.",
		"Round the amount to what the currency can express.",
	},
	ProviderInUse: {
		"Another payment account was to be connected while subscriptions, or checkouts that can still be paid, hang on the one before. The new account would know nothing of them.",
		"Cancel those subscriptions and let the checkouts expire. A new key of the same account can be saved at any time.",
	},
	ProviderRefused: {
		"The payment provider understood the request and will not carry it out: an address for the way back that it does not accept, for example. Nothing was charged.",
		"Read the provider's own words in the message, put right what they name, and send the request again with a new idempotency key.",
	},
	PaymentsNotConfigured: {
		"The application is live and has no account at a payment provider.",
		"Connect one in the application's settings. Development applications have a sandbox from the start.",
	},
	RateLimited: {
		"The key made more requests in a second than the server allows one key. Nothing was done.",
		"Wait as many seconds as Retry-After says, then send the same request. Spread bursts, or ask the operator for more.",
	},
	Overloaded: {
		"The server has as many requests under way as it can hold. Nothing was done with this one.",
		"Wait as many seconds as Retry-After says, then send the same request.",
	},
	ProviderUnavailable: {
		"The payment provider did not answer in time. Whether it acted is not known yet; the server finds out and finishes what was begun.",
		"Send the same request again with the same idempotency key.",
	},
	InternalError: {
		"Something failed on the server's side, and it is in its log under the request's id.",
		"Send the same request again, with the same id or idempotency key: what was done is not done twice. If it goes on, report the X-Request-Id.",
	},
}
