package sandbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"purser/ids"
	"purser/payments/sandbox/engine"
)

const (
	// deliverTime is the timeout of a receiver, shorter than a delivery's lease.
	deliverTime = 20 * time.Second
	// batchSize is how many deliveries are claimed in one transaction.
	batchSize = 50
)

// Flush sends the due deliveries in order. It returns the errors of failed ones, which
// are retried after their backoff.
func (s *Server) Flush(ctx context.Context, app ids.ID) error {
	done, err := waitFor(ctx, s.flushes, app)
	if err != nil {
		return err
	}
	defer done()
	var failures []error
	for {
		batch, dropped, err := s.claim(ctx, app)
		if err != nil || len(batch)+dropped == 0 {
			return errors.Join(append(failures, err)...)
		}
		if len(batch) == 0 {
			continue
		}
		failed, err := s.deliverAll(ctx, app, batch)
		if err != nil {
			return err
		}
		failures = append(failures, failed...)
		if len(batch)+dropped < batchSize {
			return errors.Join(failures...)
		}
	}
}

// claim leases the due deliveries. It also returns how many it dropped because their
// event or endpoint was deleted.
func (s *Server) claim(ctx context.Context, app ids.ID) (batch []engine.Outgoing, dropped int, err error) {
	err = s.update(ctx, app, func(account *engine.Account, _ engine.Env) error {
		queued := account.Waiting()
		batch = account.Claim(s.realNow(), batchSize)
		if dropped = queued - account.Waiting(); len(batch)+dropped == 0 {
			return errUnchanged
		}
		return nil
	})
	return batch, dropped, err
}

// deliverAll sends a batch and records the results. The application's own webhooks are
// sent first, and payments wait for these only: those to other programs are sent in the
// background.
func (s *Server) deliverAll(ctx context.Context, app ids.ID, batch []engine.Outgoing) (failures []error, err error) {
	var outside []engine.Outgoing
	results := map[string]result{}
	for _, out := range batch {
		if out.Outside {
			outside = append(outside, out)
			continue
		}
		results[out.Delivery] = accepted
		if err := s.deliverOne(ctx, out); err != nil {
			results[out.Delivery] = failed
			failures = append(failures, fmt.Errorf("sandbox: delivering %s %s: %w", out.Type, out.Event, err))
		}
	}
	// Record the results even when the request has been cancelled.
	ctx = context.WithoutCancel(ctx)
	leave, free := func() {}, true
	if len(outside) > 0 {
		if leave, free = s.senders.enter(); !free {
			for _, out := range outside {
				results[out.Delivery] = untried
			}
		}
	}
	if len(results) > 0 {
		err = s.record(ctx, app, results)
	}
	if len(outside) > 0 && free {
		s.sending.Go(func() {
			defer leave()
			s.sendOutside(ctx, app, outside)
		})
	}
	return failures, err
}

// result is the result of a claimed delivery.
type result int

const (
	untried result = iota
	accepted
	failed
)

// record stores the results of deliveries.
func (s *Server) record(ctx context.Context, app ids.ID, results map[string]result) error {
	return s.update(ctx, app, func(account *engine.Account, _ engine.Env) error {
		for id, got := range results {
			switch got {
			case accepted:
				account.MarkDelivered(id)
			case failed:
				account.MarkFailed(id, s.realNow())
			default:
				account.ReleaseClaim(id, s.realNow())
			}
		}
		return nil
	})
}

// WaitForSenders returns when no webhook to another program is being sent. It is for
// tests.
func (s *Server) WaitForSenders() { s.sending.Wait() }

const (
	// maxSenders is how many batches are sent to other programs concurrently.
	maxSenders = 4
	// sendTime is the timeout of a batch to other programs, shorter than the lease: the
	// rest of the batch is claimed again.
	sendTime = 20 * time.Second
)

// sendOutside sends a batch to other programs, in order.
func (s *Server) sendOutside(ctx context.Context, app ids.ID, batch []engine.Outgoing) {
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	results := map[string]result{}
	for _, out := range batch {
		if limited.Err() != nil {
			results[out.Delivery] = untried
			continue
		}
		results[out.Delivery] = accepted
		if err := s.deliverOne(limited, out); err != nil {
			results[out.Delivery] = failed
			s.options.Log.Info("sandbox webhook not delivered", "event", out.Event, "url", out.URL, "cause", err)
		}
	}
	if err := s.record(ctx, app, results); err != nil {
		s.options.Log.Warn("sandbox webhook results not recorded, will be sent again", "app", app.Format(ids.Application), "cause", err)
	}
}

func (s *Server) deliverOne(ctx context.Context, out engine.Outgoing) error {
	// Receivers compare the timestamp with real time, not with the account's clock.
	signedAt := s.options.Now()
	header := http.Header{}
	header.Set("Content-Type", "application/json; charset=utf-8")
	header.Set("Stripe-Signature", sign(out.Body, s.signingSecret(out.Outside, out.Secret), signedAt))
	if out.Outside {
		return s.sendToProgram(ctx, out.URL, header, out.Body)
	}
	ctx, cancel := context.WithTimeout(ctx, deliverTime)
	defer cancel()
	return s.options.Deliver(ctx, out.URL, header, out.Body)
}

// sign returns the Stripe-Signature header.
func sign(body []byte, secret string, at time.Time) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}

const (
	// maxRounds bounds delivery rounds: applying a webhook may call the API, which
	// queues webhooks again.
	maxRounds = 100
	// maxFailedRounds is how many rounds with a failed delivery are retried at once.
	maxFailedRounds = 3
)

// drainWebhooks delivers the queue and waits until it is applied, repeatedly until the
// queue is empty. Held deliveries stay.
func (s *Server) drainWebhooks(ctx context.Context, app ids.ID) error {
	failedRounds := 0
	for range maxRounds {
		failure := s.Flush(ctx, app)
		if err := s.options.Drain(ctx, app); err != nil {
			return fmt.Errorf("sandbox: applying webhooks: %w", err)
		}
		waiting := false
		err := s.update(ctx, app, func(account *engine.Account, _ engine.Env) error {
			if waiting = account.WaitingInside() > 0 && !account.Held; !waiting {
				return errUnchanged
			}
			account.Retry()
			return nil
		})
		if err != nil || !waiting {
			return err
		}
		if failure != nil {
			if failedRounds++; failedRounds == maxFailedRounds {
				return failure
			}
		}
	}
	return errors.New("sandbox: webhook queue not drained: each round queues more webhooks")
}
