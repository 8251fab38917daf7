package cashier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/payments/stripe"
	"purser/store/payments"
	"purser/store/queue"
	"purser/tenancy"
)

// Page is a hosted checkout page.
type Page struct {
	ID  ids.ID // written as ids.Checkout
	URL string
}

// sessionLifetime is how long a checkout session can be paid: an hour less than the
// provider's limit, so that a retry of the creating call is still valid.
const sessionLifetime = 23 * time.Hour

// SubscriptionCheckout opens a checkout session for the identity's first subscription.
func (c *Cashier) SubscriptionCheckout(ctx context.Context, scope tenancy.Scope, r billing.CheckoutRequest, idempotencyKey string) (Page, error) {
	return c.runForPage(ctx, scope, request{
		kind: billing.OperationCheckout, identity: r.Identity, planKey: r.PlanKey, idempotencyKey: idempotencyKey, fingerprint: r.Fingerprint(), paid: true,
		decide: func(s payments.CustomerState, op billing.Operation, _ buyer, now int64) (payments.Decision, error) {
			if err := billing.DecideCheckout(s.Subscription, s.Plan); err != nil {
				return payments.Decision{}, err
			}
			if err := billing.CheckRoom(s.Balances, s.Plan.Grants); err != nil {
				return payments.Decision{}, err
			}
			*op.Parameters.Checkout = billing.CheckoutParameters{
				Command: billing.CommandCheckout, PlanKey: s.Plan.Key, PriceID: s.Plan.Sync.PriceID, Free: s.Plan.Free(),
				Sessions: openSessions(s.Changes, now), SuccessURL: r.SuccessURL, CancelURL: r.CancelURL, ExpiresAt: sessionExpiry(now),
			}
			return payments.Decision{Operation: op, Change: &billing.Change{
				ID: ids.New(), Kind: billing.Checkout, Target: s.Plan.Terms(), State: billing.ChangeRequested, RequestedAt: now,
			}}, nil
		},
	})
}

// TopUpCheckout opens a checkout session in which the identity buys credits.
func (c *Cashier) TopUpCheckout(ctx context.Context, scope tenancy.Scope, r billing.TopUpRequest, idempotencyKey string) (Page, error) {
	return c.runForPage(ctx, scope, request{
		kind: billing.OperationTopUp, identity: r.Identity, creditKey: r.CreditKey, idempotencyKey: idempotencyKey, fingerprint: r.Fingerprint(), paid: true,
		// The provider's customer is stored with a wallet, so a refusal has to come before.
		check: func(ctx context.Context) error {
			s, err := c.topUpState(ctx, scope, r.Identity, r.CreditKey)
			if err != nil {
				return err
			}
			return billing.DecideTopUp(s.Subscription, s.Balances, grantOf(s.Credit, r.Amount), r.AmountCents, r.Currency)
		},
		decide: func(s payments.CustomerState, op billing.Operation, b buyer, now int64) (payments.Decision, error) {
			bought := grantOf(s.Credit, r.Amount)
			if err := billing.DecideTopUp(s.Subscription, s.Balances, bought, r.AmountCents, r.Currency); err != nil {
				return payments.Decision{}, err
			}
			expires := sessionExpiry(now)
			*op.Parameters.TopUp = billing.TopUpParameters{
				Command: billing.CommandTopUp, AmountCents: r.AmountCents, Currency: r.Currency,
				Name:       r.Amount.Credits() + " " + s.Credit.Name, // on a bill it is "500 Tokens"
				SuccessURL: r.SuccessURL, CancelURL: r.CancelURL, ExpiresAt: expires,
			}
			return payments.Decision{Operation: op, TopUp: &billing.TopUp{
				ID: ids.New(), Identity: r.Identity, Credit: bought,
				AmountCents: r.AmountCents, Currency: r.Currency, ConnectionID: b.connectionID, CustomerID: b.customerID, Live: b.live,
				ExpiresAt: expires, Status: billing.TopUpOpen, CreatedAt: now,
			}}, nil
		},
	})
}

func grantOf(credit metering.Credit, amount metering.Amount) billing.Grant {
	return billing.Grant{CreditID: credit.ID, CreditKey: credit.Key, Amount: amount}
}

// topUpState reads what a top-up is decided by, without creating a wallet.
func (c *Cashier) topUpState(ctx context.Context, scope tenancy.Scope, identity, creditKey string) (s payments.CustomerState, err error) {
	if s.Subscription, err = c.currentSubscription(ctx, scope, identity); err != nil {
		return s, err
	}
	app := c.options.Store.App(scope)
	if s.Credit, err = app.Credit(ctx, creditKey); err != nil {
		return s, err
	}
	wallet, err := app.Wallet(ctx, identity)
	if err != nil && !fault.Is(err, fault.WalletNotFound) {
		return s, err
	}
	s.Balances = wallet.Balances
	return s, nil
}

// sessionExpiry is when a new session expires, in whole seconds as the provider counts.
func sessionExpiry(now int64) int64 { return now - now%1000 + sessionLifetime.Milliseconds() }

// runForPage runs a request whose result is a page.
func (c *Cashier) runForPage(ctx context.Context, scope tenancy.Scope, r request) (Page, error) {
	rec, err := c.runRequest(ctx, scope, r)
	if err != nil {
		return Page{}, err
	}
	id, err := ids.Parse(ids.Checkout, rec.Result[resultID])
	return Page{ID: id, URL: rec.Result[resultURL]}, err
}

// Keys of the stored result; they cannot change.
const (
	resultID  = "id"
	resultURL = "url"
)

// checkout sells a first subscription.
func (run *operationRun) checkout(ctx context.Context) error {
	if err := run.recheckCheckout(ctx); err != nil {
		return err
	}
	if err := run.expireSessions(ctx); err != nil {
		return err
	}
	session, err := run.openSession(ctx, run.provider.CreateSubscriptionSession)
	if err != nil {
		return err
	}
	_, err = run.app.ApplyCheckout(ctx, run.fence, run.rec.ChangeID, session.ProviderSession, run.now, run.completion(session))
	return err
}

// topUp sells credits.
func (run *operationRun) topUp(ctx context.Context) error {
	if err := run.recheckTopUp(ctx); err != nil {
		return err
	}
	session, err := run.openSession(ctx, run.provider.CreatePaymentSession)
	if err != nil {
		return err
	}
	_, err = run.app.ApplyTopUp(ctx, run.fence, run.rec.ChangeID, session.ProviderSession, run.now, run.completion(session))
	return err
}

// replace sells a subscription that replaces the current one, which has no card to
// charge.
func (run *operationRun) replace(ctx context.Context) error {
	if err := run.recheckReplacement(ctx); err != nil {
		return err
	}
	if err := run.expireSessions(ctx); err != nil {
		return err
	}
	session, err := run.openSession(ctx, run.provider.CreateSubscriptionSession)
	if err != nil {
		return err
	}
	if _, err = run.app.ApplyCheckout(ctx, run.fence, run.rec.ChangeID, session.ProviderSession, run.now, nil); err != nil {
		return err
	}
	if run.rec.Parameters.SubscriptionID() != "" {
		return run.complete(ctx)
	}
	sub, err := run.currentSubscription(ctx)
	if err != nil {
		return err
	}
	return run.finishWith(ctx, payments.Completion{Answer: &sub})
}

// completion completes the operation with the page as its result.
func (run *operationRun) completion(session stripe.Session) *payments.Completion {
	op := run.rec.Operation
	op.State = billing.OperationDone
	return &payments.Completion{Operation: op, Result: map[string]string{resultID: run.rec.ChangeID.Format(ids.Checkout), resultURL: session.URL}}
}

// openSession creates the checkout session once, and enqueues a refresh for after its
// expiry: the webhook about its outcome may be lost.
func (run *operationRun) openSession(ctx context.Context, create func(context.Context, string, stripe.SessionOrder) (stripe.Session, error)) (session stripe.Session, err error) {
	customer, err := run.payer(ctx)
	if err != nil {
		return session, err
	}
	order, err := run.sessionOrder(ctx, customer)
	if err != nil {
		return session, err
	}
	err = run.step(ctx, billing.StepSession,
		func(ctx context.Context) (bool, error) {
			if run.rec.Step != billing.StepSession || run.rec.AttemptedAt == 0 {
				return false, nil // never sent
			}
			session, err = run.provider.SessionByReference(ctx, customer, order.Reference)
			if stripe.Is(err, stripe.NotFound) {
				return false, nil
			}
			return err == nil, err
		},
		func(ctx context.Context, key string) error {
			session, err = create(ctx, key, order)
			return err
		})
	if stripe.CustomerGone(err) {
		if err := run.c.options.Store.PaymentAccounts(run.scope).ForgetCustomer(ctx, run.ID, customer); err != nil {
			return session, err
		}
		run.rec.Operation = run.rec.NextAttempt() // the key was sent with this customer
		return session, errors.Join(errSuperseded, errAccountChanged())
	}
	if err != nil {
		return session, err
	}
	return session, run.c.options.Store.Queue(run.scope).Enqueue(ctx, run.job(queue.JobSession, session.ID, session.ExpiresAt+refreshDelay))
}

// payer is the customer of a session. A top-up was stored with its customer, which may
// have been forgotten since: paid by another, it would be set aside without credits.
func (run *operationRun) payer(ctx context.Context) (string, error) {
	if run.rec.Kind != billing.OperationTopUp {
		return run.c.customer(ctx, run.account, payments.CustomerOwner{Identity: run.rec.Identity, Fence: run.fence})
	}
	sold, err := run.app.CheckoutByID(ctx, run.rec.ChangeID)
	if err != nil {
		return "", err
	}
	customer, err := run.c.options.Store.PaymentAccounts(run.scope).Customer(ctx, run.account.ID, run.rec.Identity)
	if errors.Is(err, payments.ErrUnknown) || err == nil && customer != sold.CustomerID {
		err = errors.Join(errSuperseded, errAccountChanged())
	}
	return customer, err
}

// sessionOrder builds the session's parameters from those stored with the operation.
func (run *operationRun) sessionOrder(ctx context.Context, customer string) (stripe.SessionOrder, error) {
	reference := run.rec.ChangeID.Format(ids.Checkout)
	order := stripe.SessionOrder{
		CustomerID: customer, Reference: reference,
		Metadata: map[string]string{metaApp: run.scope.AppID.Format(ids.Application), metaCheckout: reference},
	}
	switch p := run.rec.Parameters; {
	case p.Change != nil:
		order.PriceID, order.ExpiresAt = p.Change.PriceID, p.Change.ExpiresAt
	case p.Checkout != nil:
		order.PriceID, order.Free, order.ExpiresAt = p.Checkout.PriceID, p.Checkout.Free, p.Checkout.ExpiresAt
		order.SuccessURL, order.CancelURL = p.Checkout.SuccessURL, p.Checkout.CancelURL
	case p.TopUp != nil:
		order.AmountCents, order.Currency, order.Name, order.ExpiresAt = p.TopUp.AmountCents, p.TopUp.Currency, p.TopUp.Name, p.TopUp.ExpiresAt
		order.SuccessURL, order.CancelURL = p.TopUp.SuccessURL, p.TopUp.CancelURL
	}
	if order.ExpiresAt == 0 {
		return order, errors.New("cashier: the operation has no session expiry")
	}
	if plan := run.rec.Parameters.PlanKey(); plan != "" {
		order.Metadata[metaPlan] = plan
	}
	if order.SuccessURL == "" {
		// A change has no return URLs of its own: use the application's.
		application, err := run.c.options.Store.Org(run.scope.OrgID).Application(ctx, run.scope.AppID)
		if err != nil {
			return order, err
		}
		order.SuccessURL = run.c.options.BaseURL + "/"
		if application.DeploymentURL != "" {
			order.SuccessURL = application.DeploymentURL
		}
		order.CancelURL = order.SuccessURL
	}
	return order, nil
}

// Metadata keys on the provider's objects.
const (
	metaApp      = "app_id"
	metaPlan     = "plan_key"
	metaCheckout = "checkout"
	metaIdentity = "identity_hash"
)

// customer returns the owner's customer id, creating the customer when it is new.
// The idempotency key depends on the identity only, so concurrent operations create
// one. The provider gets a hash of the identity, not the identity.
func (c *Cashier) customer(ctx context.Context, acct account, owner payments.CustomerOwner) (string, error) {
	accounts := c.options.Store.PaymentAccounts(acct.scope)
	known, err := accounts.Customer(ctx, acct.ID, owner.Identity)
	if !errors.Is(err, payments.ErrUnknown) {
		return known, err
	}
	hash := identityHash(acct.scope, owner.Identity)
	key := "psr:" + acct.ID.Format(connectionPrefix) + ":cust:" + hash[:32]
	metadata := map[string]string{metaApp: acct.scope.AppID.Format(ids.Application), metaIdentity: hash}
	made, err := acct.provider.CreateCustomer(ctx, key, metadata)
	if problem, ok := errors.AsType[*stripe.Problem](err); ok && problem.Saved {
		// The provider repeats the saved answer to this key for a day.
		made, err = acct.provider.CreateCustomer(ctx, key+":"+ids.New().String(), metadata)
	}
	if err != nil {
		return "", err
	}
	kept, err := c.keepCustomer(ctx, acct, owner, made)
	if !errors.Is(err, payments.ErrCustomerTaken) {
		return kept, err
	}
	// Another wallet had this identity less than a day ago, and the key repeats its answer.
	if made, err = acct.provider.CreateCustomer(ctx, key+":"+ids.New().String(), metadata); err != nil {
		return "", err
	}
	return c.keepCustomer(ctx, acct, owner, made)
}

// keepCustomer stores a created customer. If its owner was renamed or erased meanwhile, or has
// another one, the customer belongs to no wallet, and a job removes the hash of the identity from
// it: after a while, because another operation may be about to store it.
func (c *Cashier) keepCustomer(ctx context.Context, acct account, owner payments.CustomerOwner, made string) (string, error) {
	now := c.nowAt(acct.ClockOffset)
	kept, err := c.options.Store.PaymentAccounts(acct.scope).KeepCustomer(ctx, acct.ID, owner, made, now)
	if fault.Is(err, fault.WalletNotFound) || errors.Is(err, queue.ErrFenced) || err == nil && kept != made {
		label := acct.job(queue.JobLabel, made, now+c.limits.request.Milliseconds())
		err = errors.Join(err, c.options.Store.Queue(acct.scope).Enqueue(ctx, label))
	}
	return kept, err
}

func identityHash(scope tenancy.Scope, identity string) string {
	sum := sha256.Sum256([]byte(scope.AppID.String() + "\x00" + identity))
	return hex.EncodeToString(sum[:])
}

// Portal opens the billing portal, where the identity changes its card and sees
// invoices. It continues when the caller disconnects: a customer that it creates is stored.
func (c *Cashier) Portal(ctx context.Context, scope tenancy.Scope, identity, returnURL string) (url string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.limits.request)
	defer cancel()
	url, err = c.portal(ctx, scope, identity, returnURL)
	return url, publicError(err)
}

func (c *Cashier) portal(ctx context.Context, scope tenancy.Scope, identity, returnURL string) (string, error) {
	app := c.options.Store.App(scope)
	acct, err := c.account(ctx, scope)
	if err != nil {
		return "", err
	}
	wallet, err := app.Wallet(ctx, identity)
	if err != nil {
		return "", err
	}
	owner := payments.CustomerOwner{Identity: identity, WalletID: wallet.ID}
	url, err := c.openPortal(ctx, &acct, owner, returnURL)
	for tries := 1; tries < 3 && (stripe.CustomerGone(err) || stripe.ConfigurationRefused(err)); tries++ { // forgotten now
		url, err = c.openPortal(ctx, &acct, owner, returnURL)
	}
	return url, err
}

// openPortal opens the portal, or forgets a customer or configuration that the provider
// no longer has.
func (c *Cashier) openPortal(ctx context.Context, acct *account, owner payments.CustomerOwner, returnURL string) (string, error) {
	accounts := c.options.Store.PaymentAccounts(acct.scope)
	if acct.PortalConfiguration == "" {
		// Concurrent calls create two configurations; one stays unused.
		created, err := acct.provider.CreatePortalConfiguration(ctx, "psr:"+ids.New().Format("portal"), "Billing")
		if err != nil {
			return "", err
		}
		if err := accounts.SetPortalConfiguration(ctx, acct.ID, created); err != nil {
			return "", err
		}
		acct.PortalConfiguration = created
	}
	customer, err := c.customer(ctx, *acct, owner)
	if err != nil {
		return "", err
	}
	url, err := acct.provider.CreatePortal(ctx, "psr:"+ids.New().Format("portal"), customer, acct.PortalConfiguration, returnURL)
	switch {
	case stripe.CustomerGone(err):
		err = errors.Join(err, accounts.ForgetCustomer(ctx, acct.ID, customer))
	case stripe.ConfigurationRefused(err):
		acct.PortalConfiguration = ""
	}
	return url, err
}
