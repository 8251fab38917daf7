package cashier

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"purser/ids"
	"purser/jobs"
	"purser/metering"
	"purser/store/payments"
	"purser/store/queue"
	"purser/store/verify"
)

const (
	// resealEntries is how many entries a run of the job seals: less than its timeout
	// allows. The next run goes on there.
	resealEntries = 200_000
	// rereadTries is after how many failures the job reads all entries again, which may
	// have been repaired: about half a day.
	rereadTries = 20
)

// finishIdentityChange finishes what follows a wallet's new identity: the log of its requests
// and denials, and its seal.
func (c *Cashier) finishIdentityChange(ctx context.Context, job jobs.Job) (next int64, err error) {
	id, err := uuid.Parse(job.Object)
	if err != nil {
		return 0, err
	}
	if next, err = c.options.Store.App(job.Scope).FinishIdentityChange(ctx, ids.ID(id), c.realNow()); err != nil {
		return 0, err
	}
	if next != 0 {
		next += job.ClockOffset
	}
	done, err := c.options.Store.Verification(job.Scope).Reseal(ctx, ids.ID(id), verify.ResealInput{
		Last: next == 0, Restart: job.Tries%rereadTries == rereadTries-1, Most: resealEntries,
	})
	if err == nil && !done {
		next = c.nowAt(job.ClockOffset)
	}
	return next, err
}

// labelCustomer sets the hash of the identity in the customer's metadata after the
// identity has changed. Of an erased one, and of a customer that no wallet has, it removes
// the hash: the identity could be guessed from it.
func (c *Cashier) labelCustomer(ctx context.Context, acct account, job queue.Job) (next int64, err error) {
	identity, err := c.options.Store.PaymentAccounts(acct.scope).IdentityOfCustomer(ctx, acct.ID, job.Object)
	unknown := errors.Is(err, payments.ErrUnknown)
	if err != nil && !unknown {
		return 0, err
	}
	label := ""
	if !unknown && !metering.IsTombstone(identity) {
		label = identityHash(acct.scope, identity)
	}
	err = acct.provider.SetCustomerMetadata(ctx, "psr:label:"+ids.New().String(), job.Object, map[string]string{metaIdentity: label})
	return 0, ignoreNotFound(err)
}
