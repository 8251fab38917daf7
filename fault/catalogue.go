package fault

import (
	"maps"
	"slices"
)

// The codes that callers may see. Each has its kind and message below.
const (
	InvalidRequest        Code = "invalid_request"
	MissingAPIKey         Code = "missing_api_key"
	InvalidAPIKey         Code = "invalid_api_key"
	ExpiredAPIKey         Code = "expired_api_key"
	RevokedAPIKey         Code = "revoked_api_key"
	PermissionDenied      Code = "permission_denied"
	PermissionNotHeld     Code = "permission_not_held"
	UnsupportedKeyKind    Code = "unsupported_key_kind"
	PathNotFound          Code = "not_found"
	CreditNotFound        Code = "credit_not_found"
	FeatureNotFound       Code = "feature_not_found"
	WalletNotFound        Code = "wallet_not_found"
	APIKeyNotFound        Code = "api_key_not_found"
	PlanNotFound          Code = "plan_not_found"
	SubscriptionNotFound  Code = "subscription_not_found"
	MethodNotAllowed      Code = "method_not_allowed"
	AlreadyExists         Code = "already_exists"
	RevisionConflict      Code = "revision_conflict"
	LastOwner             Code = "last_owner"
	APIKeyNotRotatable    Code = "api_key_not_rotatable"
	PricingLocked         Code = "feature_pricing_locked"
	DeduplicationLocked   Code = "feature_deduplication_locked"
	BillingPeriodLocked   Code = "billing_period_locked"
	BalanceOverflow       Code = "balance_overflow"
	TooManyBalances       Code = "too_many_balances"
	InsufficientBalance   Code = "insufficient_balance"
	FeatureLimitExceeded  Code = "feature_limit_exceeded"
	SubscriptionInactive  Code = "subscription_inactive"
	SubscriptionExists    Code = "subscription_exists"
	AlreadyOnPlan         Code = "already_on_plan"
	PlanInactive          Code = "plan_inactive"
	PlanNotSynced         Code = "plan_not_synced"
	CancellationScheduled Code = "cancellation_scheduled"
	PaymentHold           Code = "payment_hold"
	TopupsDisabled        Code = "topups_disabled"
	IdempotencyConflict   Code = "idempotency_conflict"
	OperationInProgress   Code = "operation_in_progress"
	ProviderInUse         Code = "provider_in_use"
	BodyTooLarge          Code = "body_too_large"
	UnsupportedMedia      Code = "unsupported_media_type"
	AmountRequired        Code = "amount_required"
	AmountNotAccepted     Code = "amount_not_accepted"
	ChargeOutOfRange      Code = "charge_out_of_range"
	UsageOutOfRange       Code = "usage_out_of_range"
	BillingPeriodMissing  Code = "billing_period_missing"
	CallbackMultiplier    Code = "callback_multiplier"
	CurrencyMismatch      Code = "currency_mismatch"
	AmountTooSmall        Code = "amount_too_small"
	AmountNotChargeable   Code = "amount_not_chargeable"
	PaymentsNotConfigured Code = "payments_not_configured"
	ProviderRefused       Code = "provider_refused"
	RateLimited           Code = "rate_limited"
	Overloaded            Code = "overloaded"
	ProviderUnavailable   Code = "provider_unavailable"
	InternalError         Code = "internal_error"
)

type entry struct {
	kind    Kind
	message string
}

// catalogue is every code once. The messages tell the caller what to do.
var catalogue = map[Code]entry{
	InvalidRequest:        {Invalid, "The request is malformed. Compare it with /v1/openapi.json."},
	MissingAPIKey:         {Unauthorized, "Send a secret API key in the header 'Authorization: Bearer <key>'."},
	InvalidAPIKey:         {Unauthorized, "This API key is not known. Check that it was copied whole."},
	ExpiredAPIKey:         {Unauthorized, "This API key has expired. Create a new one in the dashboard."},
	RevokedAPIKey:         {Unauthorized, "This API key was revoked. Create a new one in the dashboard."},
	PermissionDenied:      {Forbidden, "This API key lacks the permission that the operation needs."},
	PermissionNotHeld:     {Forbidden, "You can only give permissions that you have yourself. Choose fewer, or ask someone who has them."},
	UnsupportedKeyKind:    {Forbidden, "Publishable keys cannot call this API. Use a secret key, from a server."},
	PathNotFound:          {NotFound, "There is nothing at this path. Compare it with /v1/openapi.json."},
	CreditNotFound:        {NotFound, "There is no credit with this key. Create it first with POST /v1/credits."},
	FeatureNotFound:       {NotFound, "There is no feature with this key. Create it first with POST /v1/features."},
	WalletNotFound:        {NotFound, "There is no wallet for this identity. Create it with POST /v1/wallets or a deposit."},
	APIKeyNotFound:        {NotFound, "There is no such API key in this application."},
	PlanNotFound:          {NotFound, "There is no plan with this key. Create it first with POST /v1/plans."},
	SubscriptionNotFound:  {NotFound, "This identity has no subscription. Start one with POST /v1/subscription-checkout."},
	MethodNotAllowed:      {NotAllowed, "This path does not take this method. The Allow header lists those that it takes."},
	AlreadyExists:         {Conflict, "This key is taken. Choose another, or update what is there."},
	RevisionConflict:      {Conflict, "It was changed since you read it. Read it again, then repeat your change on the new revision."},
	LastOwner:             {Conflict, "This is the organization's only owner. Make someone else an owner first."},
	APIKeyNotRotatable:    {Conflict, "Only a working key that has no replacement yet can be rotated. Rotate its replacement, or create a new key."},
	PricingLocked:         {Conflict, "A plan or a live subscription names this feature, so its credit, cost, quantity per unit and pricing mode cannot change."},
	DeduplicationLocked:   {Conflict, "This feature has been used, so its deduplication period cannot change. Create a new feature instead."},
	BillingPeriodLocked:   {Conflict, "This wallet has been charged, so its billing period cannot change."},
	BalanceOverflow:       {Conflict, "The balance would pass 19 digits of nanocredits. Nothing was changed."},
	TooManyBalances:       {Conflict, "This wallet already holds 100 credits, the most that it can. Nothing was changed."},
	InsufficientBalance:   {Conflict, "The balance does not cover this charge. Deposit credits, then send the same event again."},
	FeatureLimitExceeded:  {Conflict, "The plan's allowance for this feature does not have this much left in the period."},
	SubscriptionInactive:  {Conflict, "The subscription is on hold, so what its plan includes rests until it is paid."},
	SubscriptionExists:    {Conflict, "This identity has a subscription already. Change its plan with POST /v1/subscriptions/{identity}/change."},
	AlreadyOnPlan:         {Conflict, "The subscription is on this plan already, and there is no change that could be called off."},
	PlanInactive:          {Conflict, "This plan is not active, so nobody can take it. Choose another, or activate it with PATCH /v1/plans/{key}."},
	PlanNotSynced:         {Conflict, "The payment provider does not have this plan yet as it is now. Try again once its syncStatus is synced."},
	CancellationScheduled: {Conflict, "This subscription ends with its period. To keep it, first send cancelAtPeriodEnd false to POST /v1/subscriptions/{identity}/cancel."},
	PaymentHold:           {Conflict, "A payment of this subscription is outstanding. Have it paid first, in the billing portal."},
	TopupsDisabled:        {Conflict, "The terms of this subscription allow no top-ups. Change to a plan that has them enabled."},
	IdempotencyConflict:   {Conflict, "This idempotency key was used with another body. Repeat the first body, or choose a new key."},
	OperationInProgress:   {Conflict, "Another payment operation for this identity is in progress. Send the same request again in a few seconds, with the same idempotency key."},
	ProviderInUse:         {Conflict, "Subscriptions or open checkouts hang on the payment account that is connected. End them first, then connect the other account."},
	BodyTooLarge:          {TooLarge, "The body is larger than 16 KiB."},
	UnsupportedMedia:      {WrongMedia, "Send the body as JSON, with the header 'Content-Type: application/json' and no content encoding."},
	AmountRequired:        {Unprocessable, "This feature is priced by callback: send amountNanocredits with the use."},
	AmountNotAccepted:     {Unprocessable, "This feature has a fixed price: send the use without amountNanocredits."},
	ChargeOutOfRange:      {Unprocessable, "The charge would pass 19 digits of nanocredits. Send a smaller quantity."},
	UsageOutOfRange:       {Unprocessable, "The quantity used in this period would pass what can be counted. Send a smaller quantity."},
	BillingPeriodMissing:  {Unprocessable, "This feature is billed once a billing period, and the wallet has none. Set it with PATCH /v1/wallets/{identity}/billing-period."},
	CallbackMultiplier:    {Unprocessable, "A plan multiplies the price of this feature, so it cannot be priced by callback."},
	CurrencyMismatch:      {Unprocessable, "This plan is priced in another currency than the subscription. Choose a plan in the subscription's currency."},
	AmountTooSmall:        {Unprocessable, "The amount is below the smallest one that can be charged in this currency. Ask for more."},
	AmountNotChargeable:   {Unprocessable, "This currency cannot be charged in steps so small. Round the amount."},
	PaymentsNotConfigured: {Unprocessable, "This application has no payment account. Connect one in the dashboard."},
	ProviderRefused:       {Unprocessable, "The payment provider refused this. Its reason is in the message."},
	RateLimited:           {Limited, "Too many requests with this key. Wait as long as Retry-After says."},
	Overloaded:            {Limited, "The service is at its limit and has done nothing with this request. Send it again after Retry-After."},
	ProviderUnavailable:   {Internal, "The payment provider did not answer. Send the same request again, with the same idempotency key."},
	InternalError:         {Internal, "Something failed on our side. Repeating the request with the same id or idempotency key is safe."},
}

// Codes lists the whole catalogue, sorted.
func Codes() []Code {
	return slices.Sorted(maps.Keys(catalogue))
}

// Known reports whether the catalogue has the code.
func Known(code Code) bool {
	_, known := catalogue[code]
	return known
}
