package main

import (
	"log/slog"
	"time"

	"purser/jobs"
	"purser/mail"
	"purser/store"
	"purser/tenancy/vault"
)

// mailTimeout bounds one run of the task that sends mails.
const mailTimeout = 2 * time.Minute

// newMail creates the outbox and the task that empties it, or returns nil without an SMTP
// server.
func newMail(c config, db *store.Store, seals *vault.Vault, queue *jobs.Queue, meters *metrics, log *slog.Logger) *mail.Outbox {
	if c.smtp == nil {
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
