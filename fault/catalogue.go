package fault

import (
	"maps"
	"slices"
)

// The codes that callers may see. Each has its kind and message below.
const (
	InvalidRequest          Code = "invalid_request"
	MissingAPIKey           Code = "missing_api_key"
	InvalidAPIKey           Code = "invalid_api_key"
	ExpiredAPIKey           Code = "expired_api_key"
	RevokedAPIKey           Code = "revoked_api_key"
	PermissionDenied        Code = "permission_denied"
	PermissionNotHeld       Code = "permission_not_held"
	UnsupportedKeyKind      Code = "unsupported_key_kind"
	PathNotFound            Code = "not_found"
	CreditNotFound          Code = "credit_not_found"
	FeatureNotFound         Code = "feature_not_found"
	AlertRuleNotFound       Code = "alert_rule_not_found"
	WalletNotFound          Code = "wallet_not_found"
	EventNotFound           Code = "event_not_found"
	APIKeyNotFound          Code = "api_key_not_found"
	PlanNotFound            Code = "plan_not_found"
	SubscriptionNotFound    Code = "subscription_not_found"
	NotificationNotFound    Code = "notification_not_found"
	WebhookEndpointNotFound Code = "webhook_endpoint_not_found"
	MethodNotAllowed        Code = "method_not_allowed"
	AlreadyExists           Code = "already_exists"
	RevisionConflict        Code = "revision_conflict"
	LastOwner               Code = "last_owner"
	Archived                Code = "archived"
	APIKeyNotRotatable      Code = "api_key_not_rotatable"
	PricingLocked           Code = "feature_pricing_locked"
	DeduplicationLocked     Code = "feature_deduplication_locked"
	BillingPeriodLocked     Code = "billing_period_locked"
	BalanceOverflow         Code = "balance_overflow"
	TooManyBalances         Code = "too_many_balances"
	InsufficientBalance     Code = "insufficient_balance"
	FeatureLimitExceeded    Code = "feature_limit_exceeded"
	GroupConflict           Code = "group_conflict"
	SubscriptionInactive    Code = "subscription_inactive"
	SubscriptionExists      Code = "subscription_exists"
	AlreadyOnPlan           Code = "already_on_plan"
	PlanInactive            Code = "plan_inactive"
	PlanNotSynced           Code = "plan_not_synced"
	CancellationScheduled   Code = "cancellation_scheduled"
	PaymentHold             Code = "payment_hold"
	TopupsDisabled          Code = "topups_disabled"
	ReversalTooLarge        Code = "reversal_too_large"
	EventNotReversible      Code = "event_not_reversible"
	TransferToSelf          Code = "transfer_to_self"
	IdentityTaken           Code = "identity_taken"
	WalletInUse             Code = "wallet_in_use"
	IdempotencyConflict     Code = "idempotency_conflict"
	OperationInProgress     Code = "operation_in_progress"
	ProviderInUse           Code = "provider_in_use"
	FeedExpired             Code = "feed_expired"
	TooManyEndpoints        Code = "too_many_webhook_endpoints"
	CatalogChanged          Code = "catalog_changed"
	PaymentNotRefundable    Code = "payment_not_refundable"
	CatalogTooLarge         Code = "catalog_too_large"
	BodyTooLarge            Code = "body_too_large"
	UnsupportedMedia        Code = "unsupported_media_type"
	AmountRequired          Code = "amount_required"
	AmountNotAccepted       Code = "amount_not_accepted"
	ChargeOutOfRange        Code = "charge_out_of_range"
	UsageOutOfRange         Code = "usage_out_of_range"
	BillingPeriodMissing    Code = "billing_period_missing"
	CallbackMultiplier      Code = "callback_multiplier"
	CurrencyMismatch        Code = "currency_mismatch"
	AmountTooSmall          Code = "amount_too_small"
	AmountNotChargeable     Code = "amount_not_chargeable"
	PaymentsNotConfigured   Code = "payments_not_configured"
	ProviderRefused         Code = "provider_refused"
	RateLimited             Code = "rate_limited"
	Overloaded              Code = "overloaded"
	ProviderUnavailable     Code = "provider_unavailable"
	InternalError           Code = "internal_error"
)

type entry struct {
	kind    Kind
	message string
}

// catalogue is every code once. The messages tell the caller what to do.
var catalogue = map[Code]entry{
	InvalidRequest:          {Invalid, "The request is invalid. Compare it with /v1/openapi.json."},
	MissingAPIKey:           {Unauthorized, "Send a secret API key in the header 'Authorization: Bearer <key>'."},
	InvalidAPIKey:           {Unauthorized, "Unknown API key. Check that you copied it completely."},
	ExpiredAPIKey:           {Unauthorized, "This API key has expired. Create a new one in the dashboard."},
	RevokedAPIKey:           {Unauthorized, "This API key was revoked. Create a new one in the dashboard."},
	PermissionDenied:        {Forbidden, "This API key doesn't have the required permission."},
	PermissionNotHeld:       {Forbidden, "You can only grant permissions you have."},
	UnsupportedKeyKind:      {Forbidden, "Publishable keys cannot call this API. Use a secret key, from a server."},
	PathNotFound:            {NotFound, "Unknown path. Compare it with /v1/openapi.json."},
	CreditNotFound:          {NotFound, "There is no credit with this key. Create it first with POST /v1/credits."},
	FeatureNotFound:         {NotFound, "There is no feature with this key. Create it first with POST /v1/features."},
	AlertRuleNotFound:       {NotFound, "There is no alert rule with this key. Create it with PUT /v1/alert-rules/{key}."},
	WalletNotFound:          {NotFound, "There is no wallet for this identity. Create it with POST /v1/wallets or a deposit."},
	EventNotFound:           {NotFound, "There is no event with this id. Denied usage leaves no event."},
	APIKeyNotFound:          {NotFound, "There is no such API key in this application."},
	PlanNotFound:            {NotFound, "There is no plan with this key. Create it first with POST /v1/plans."},
	SubscriptionNotFound:    {NotFound, "This identity has no subscription. Start one with POST /v1/subscription-checkout."},
	MethodNotAllowed:        {NotAllowed, "This path doesn't support this method. The Allow header lists the supported ones."},
	AlreadyExists:           {Conflict, "This key already exists. Choose another key, or update the existing object."},
	RevisionConflict:        {Conflict, "This object changed since you read it. Read it again, then retry with the new revision."},
	LastOwner:               {Conflict, "This is the organization's only owner. Make someone else an owner first."},
	Archived:                {Conflict, "This application or its organization is archived, so nothing in it can change. Restore it first."},
	APIKeyNotRotatable:      {Conflict, "Only a working key that has no replacement yet can be rotated. Rotate its replacement, or create a new key."},
	PricingLocked:           {Conflict, "A plan or subscription uses this feature, so its credit, cost, quantity per unit and pricing mode can't change."},
	DeduplicationLocked:     {Conflict, "This feature has been used, so its deduplication period cannot change. Create a new feature instead."},
	BillingPeriodLocked:     {Conflict, "This wallet has been charged, so its billing period cannot change."},
	BalanceOverflow:         {Conflict, "The balance would exceed 19 digits of nanocredits. Nothing was changed."},
	TooManyBalances:         {Conflict, "This wallet already holds 100 credits, the maximum. Nothing was changed."},
	InsufficientBalance:     {Conflict, "The balance does not cover this charge. Deposit credits, then send the same event again."},
	FeatureLimitExceeded:    {Conflict, "This exceeds the plan's remaining allowance for the feature in this period."},
	GroupConflict:           {Conflict, "Some of these event ids are already recorded, and not all of them. Nothing was charged. Send the original group, or use new event ids."},
	SubscriptionInactive:    {Conflict, "The subscription is on hold. Features with an allowance are declined until it is paid or resumed."},
	SubscriptionExists:      {Conflict, "This identity already has a subscription. Change its plan with POST /v1/subscriptions/{identity}/change."},
	AlreadyOnPlan:           {Conflict, "The subscription is already on this plan, and there is no pending change to undo."},
	PlanInactive:            {Conflict, "This plan is not active. Choose another plan, or activate it with PATCH /v1/plans/{key}."},
	PlanNotSynced:           {Conflict, "This plan is not synced with the payment provider yet. Try again once its syncStatus is synced."},
	CancellationScheduled:   {Conflict, "This subscription cancels at the end of its period. To keep it, first send cancelAtPeriodEnd false to POST /v1/subscriptions/{identity}/cancel."},
	PaymentHold:             {Conflict, "This subscription has an outstanding payment. The customer can pay it in the billing portal."},
	TopupsDisabled:          {Conflict, "This subscription doesn't allow top-ups. Change to a plan with top-ups enabled."},
	ReversalTooLarge:        {Conflict, "The reversals of this event would exceed its charge. Nothing was changed."},
	EventNotReversible:      {Conflict, "This event can't be reversed: it was deduplicated, or already fully reversed."},
	TransferToSelf:          {Unprocessable, "The sender and the receiver are the same wallet. Name two different identities."},
	IdentityTaken:           {Conflict, "The new identity already has a wallet. Choose another identity."},
	WalletInUse:             {Conflict, "The wallet has a paid subscription, an open checkout or a payment in progress. End it first, then erase the wallet."},
	IdempotencyConflict:     {Conflict, "This idempotency key was used with a different body. Send the original body, or use a new key."},
	OperationInProgress:     {Conflict, "Another payment operation for this identity is in progress. Send the same request again in a few seconds, with the same idempotency key."},
	ProviderInUse:           {Conflict, "The connected payment account has subscriptions or open checkouts. End them first, then connect the other account."},
	BodyTooLarge:            {TooLarge, "The body is larger than this operation accepts: 16 KiB unless the reference says otherwise."},
	UnsupportedMedia:        {WrongMedia, "Send the body as JSON, with the header 'Content-Type: application/json' and no content encoding."},
	AmountRequired:          {Unprocessable, "This feature is priced per event: send amountNanocredits."},
	AmountNotAccepted:       {Unprocessable, "This feature has a fixed price: leave out amountNanocredits."},
	ChargeOutOfRange:        {Unprocessable, "The charge would exceed 19 digits of nanocredits. Send a smaller quantity."},
	UsageOutOfRange:         {Unprocessable, "The quantity used in this period would exceed the maximum. Send a smaller quantity."},
	BillingPeriodMissing:    {Unprocessable, "This feature is billed once per billing period, and the wallet has none. Set it with PATCH /v1/wallets/{identity}/billing-period."},
	CallbackMultiplier:      {Unprocessable, "A plan overrides the price of this feature, so it can't be priced per event."},
	CurrencyMismatch:        {Unprocessable, "This plan's currency differs from the subscription's. Choose a plan in the subscription's currency."},
	AmountTooSmall:          {Unprocessable, "The amount is below the minimum charge for this currency."},
	AmountNotChargeable:     {Unprocessable, "This currency doesn't support amounts this precise. Round the amount."},
	PaymentsNotConfigured:   {Unprocessable, "This application has no payment account. Connect one in the dashboard."},
	ProviderRefused:         {Unprocessable, "The payment provider rejected this request."},
	RateLimited:             {Limited, "Too many requests with this key. Wait for the seconds in Retry-After."},
	Overloaded:              {Limited, "The service is overloaded and didn't process this request. Retry after the seconds in Retry-After."},
	ProviderUnavailable:     {Internal, "The payment provider did not respond. Send the same request again with the same idempotency key."},
	InternalError:           {Internal, "Something went wrong on our end. Retrying with the same id or idempotency key is safe."},
	NotificationNotFound:    {NotFound, "There is no notification with this ID. Notifications are deleted after 90 days, unless the operator configured another time."},
	WebhookEndpointNotFound: {NotFound, "There is no webhook endpoint with this ID."},
	FeedExpired:             {Conflict, "Notifications after this number have been deleted. Note the feed's last number, copy the current state, then continue after that number."},
	PaymentNotRefundable:    {Conflict, "This payment can't be refunded here. Refund it in the payment provider's dashboard."},
	CatalogChanged:          {Conflict, "The catalog changed since you read it. Nothing was applied. Preview your changes again, then apply them with the new version."},
	CatalogTooLarge:         {Conflict, "A catalog can be read or applied as a whole with at most 500 credits, 500 features and 500 plans, and 20,000 limits, grants and multipliers of all plans together."},
	TooManyEndpoints:        {Conflict, "This application already has 20 webhook endpoints, the maximum. Delete one first."},
}

// Codes lists the whole catalogue, sorted.
func Codes() []Code {
	return slices.Sorted(maps.Keys(catalogue))
}

func Known(code Code) bool {
	_, known := catalogue[code]
	return known
}
