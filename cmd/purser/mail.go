package main

import (
	"context"
	"log/slog"
	"time"

	"purser/jobs"
	"purser/mail"
	"purser/store"
	"purser/tenancy/vault"
)

const (
	// mailTimeout bounds one run of the task that sends mails.
	mailTimeout = 2 * time.Minute
	// expiryInterval is the time between two passes that delete expired mails.
	expiryInterval = time.Hour
)

// newMail creates the outbox and the task that empties it. Without an SMTP server it returns
// nil: the mails of a server that had one are deleted when they expire.
func newMail(c config, db *store.Store, seals *vault.Vault, queue *jobs.Queue, meters *metrics, log *slog.Logger) *mail.Outbox {
	if c.smtp == nil {
		queue.Every(jobs.Task{Name: "delete expired mails", Interval: expiryInterval, Run: func(ctx context.Context) error {
			return db.Outbox().RemoveExpired(ctx, db.Clock().Now())
		}})
		return nil
	}
	outbox := mail.New(mail.Options{
		Store: db, Vault: seals, Server: *c.smtp, From: c.mailFrom, BaseURL: c.baseURL, Log: log,
		Observe: func(kind mail.Kind, outcome string) { meters.mails.WithLabelValues(string(kind), outcome).Inc() },
	})
	queue.Every(jobs.Task{Name: "send mail", Interval: mail.Interval, Timeout: mailTimeout, Run: outbox.SendDue})
	queue.Every(jobs.Task{Name: "mail notifications", Interval: mail.NoticeInterval, Run: outbox.MailNotifications})
	return outbox
}
