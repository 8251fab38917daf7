package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"purser/ids"
	"purser/metering"
	"purser/notify"
	"purser/store/notifications"
	"purser/store/people"
	"purser/tenancy"
	letters "purser/views/mail"
)

const (
	// NoticeInterval is the time between two runs of MailNotifications. A run costs one
	// read for each application.
	NoticeInterval = time.Minute
	// noticeAge is how old a notification may be to be mailed about: a server that gets an
	// SMTP server later does not send what happened long before.
	noticeAge = 24 * time.Hour
	// maxNoticePages bounds how much of one application's feed a run goes through.
	maxNoticePages = 50
	// PreferencesPath is where people choose their mails.
	PreferencesPath = "/account#mail"
)

// topics are the notifications that members are mailed about.
var topics = map[notify.Type]tenancy.MailTopic{
	notify.BalanceLow: tenancy.MailAlerts, notify.BalanceExhausted: tenancy.MailAlerts, notify.AllowanceThreshold: tenancy.MailAlerts,
	notify.WebhookPaused: tenancy.MailWebhooks, notify.KeyExpiring: tenancy.MailKeys,
}

// topicsOf are those of alerts, or the others.
func topicsOf(alerts bool) []tenancy.MailTopic {
	return slices.DeleteFunc(tenancy.MailTopics(), func(t tenancy.MailTopic) bool { return (t == tenancy.MailAlerts) != alerts })
}

func topicTypes() []notify.Type { return slices.Collect(maps.Keys(topics)) }

// MailNotifications queues mails about notifications to the members who want them, each
// once.
func (o *Outbox) MailNotifications(ctx context.Context) error {
	return o.options.Store.Directory().Each(ctx, "mail", o.mailApplication)
}

func (o *Outbox) mailApplication(ctx context.Context, scope tenancy.Scope) error {
	app := o.options.Store.Notifications(scope)
	for range maxNoticePages {
		now := o.options.Now()
		unmailed, err := app.Unmailed(ctx, topicTypes(), now-noticeAge.Milliseconds())
		if err != nil || unmailed.Upto == unmailed.After {
			return err
		}
		var list []notifications.Addressed
		if len(unmailed.Notifications) > 0 {
			if list, err = o.address(ctx, scope, unmailed.Notifications); err != nil {
				return err
			}
		}
		if err := app.FinishMailing(ctx, unmailed, list, now); err != nil {
			return err
		}
	}
	return nil
}

// address writes the letters to the members who want them.
func (o *Outbox) address(ctx context.Context, scope tenancy.Scope, news []notify.Notification) (list []notifications.Addressed, err error) {
	org := o.options.Store.Org(scope.OrgID)
	members, err := org.MailRoster(ctx)
	if err != nil {
		return nil, err
	}
	organization, err := org.Organization(ctx)
	if err != nil {
		return nil, err
	}
	application, err := org.Application(ctx, scope.AppID)
	if err != nil {
		return nil, err
	}
	place := noticePlace{base: o.options.BaseURL, org: organization, app: application}
	for _, m := range members {
		for _, alerts := range []bool{false, true} {
			to, err := o.addressMember(place, m, news, alerts)
			if err != nil {
				return nil, err
			}
			if to.Wanted > 0 {
				list = append(list, to)
			}
		}
	}
	return list, nil
}

// addressMember writes the letters about alerts, which may be very many, or the others.
func (o *Outbox) addressMember(place noticePlace, m people.MailMember, news []notify.Notification, alerts bool) (to notifications.Addressed, err error) {
	to.UserID, to.Alerts = m.UserID, alerts
	seal := func(letter letters.Letter, topics ...tenancy.MailTopic) (people.Mail, error) {
		return o.seal(Alert, content{To: m.Email, Letter: letter, Reader: &reader{OrgID: place.org.ID, UserID: m.UserID, Topics: topics, Live: place.app.Live}}, 0)
	}
	for _, n := range news {
		topic := topics[n.Type]
		if (topic == tenancy.MailAlerts) != alerts || !m.GetsMail(topic, m.Chosen, place.app.Live) {
			continue
		}
		if to.Wanted++; to.Wanted > notify.MaxHourlyMails {
			continue
		}
		sealed, err := seal(place.letter(n), topic)
		if err != nil {
			return to, err
		}
		to.Mails = append(to.Mails, sealed)
	}
	if to.Wanted > 0 {
		to.Rest, err = seal(place.rest(alerts), topicsOf(alerts)...)
	}
	return to, err
}

// noticePlace is the application that letters are about.
type noticePlace struct {
	base string
	org  tenancy.Organization
	app  tenancy.Application
}

func (p noticePlace) link(parts string) string {
	return p.base + "/o/" + p.org.Slug + "/a/" + p.app.Slug + parts
}

// letter tells of a notification.
func (p noticePlace) letter(n notify.Notification) letters.Letter {
	l := letters.Letter{}
	in := " in the application “" + letters.Name(p.app.Name) + "” of “" + letters.Name(p.org.Name) + "”"
	name := letters.Name(p.app.Name)
	switch n.Type {
	case notify.BalanceLow, notify.BalanceExhausted:
		var data notify.BalanceData
		_ = json.Unmarshal(n.Data, &data) // what can't be read is left out
		l.Subject, l.Paragraphs = "Low balance in "+name+": "+letters.Name(n.Identity), []string{"A customer's balance fell below a threshold" + in + "."}
		if n.Type == notify.BalanceExhausted {
			l.Subject, l.Paragraphs = "Usage declined in "+name+": "+letters.Name(n.Identity), []string{"Usage of a customer was declined because the balance is too low" + in + "."}
		}
		l.Facts = facts("Customer", letters.Name(n.Identity), "Credit", data.CreditKey, "Balance", credits(data.Balance), "Threshold", credits(data.Threshold), "Rule", data.Rule)
		l.Button, l.Link = "View customer", p.link("/wallets/"+n.WalletID.Format(ids.Wallet))
	case notify.AllowanceThreshold:
		var data notify.AllowanceData
		_ = json.Unmarshal(n.Data, &data)
		l.Subject = fmt.Sprintf("Allowance used to %d%% in %s: %s", data.Percent, name, letters.Name(n.Identity))
		l.Paragraphs = []string{fmt.Sprintf("A customer used %d%% of an allowance%s.", data.Percent, in)}
		l.Facts = facts("Customer", letters.Name(n.Identity), "Feature", data.FeatureKey, "Used", fmt.Sprintf("%d of %d", data.Used, data.Limit), "Rule", data.Rule)
		l.Button, l.Link = "View customer", p.link("/wallets/"+n.WalletID.Format(ids.Wallet))
	case notify.WebhookPaused:
		var data notify.PausedData
		_ = json.Unmarshal(n.Data, &data)
		l.Subject, l.Paragraphs = "Webhook endpoint paused in "+name, []string{"A webhook endpoint was paused" + in + ". Its deliveries wait and are sent when it is enabled again."}
		reason := "It accepted nothing for five days"
		if data.Reason == notify.PauseGone {
			reason = "It answered 410 Gone"
		}
		l.Facts = facts("Endpoint", data.URL, "Reason", reason)
		l.Button, l.Link = "View application", p.link("")
	case notify.KeyExpiring:
		var data notify.KeyData
		_ = json.Unmarshal(n.Data, &data)
		l.Subject, l.Paragraphs = "API key expires soon in "+name, []string{"An API key expires soon" + in + ". Rotate it to get a new one; both work for a while."}
		l.Facts = facts("Key", letters.Name(data.Name), "Expires", instant(data.ExpiresAt))
		l.Button, l.Link = "View API keys", p.link("/keys")
	}
	l.Closing = p.closing()
	return l
}

// rest says that there are more alerts, or other notifications, than mails.
func (p noticePlace) rest(alerts bool) letters.Letter {
	subject, about, further := "More notifications in ", "API keys and webhook endpoints", "ones"
	if alerts {
		subject, about, further = "More alerts in ", "alerts", "alerts"
	}
	return letters.Letter{
		Subject:    subject + letters.Name(p.app.Name),
		Paragraphs: []string{fmt.Sprintf("You got %d mails about %s in the last hour, so further %s aren't mailed until the hour is over. All of them are in the dashboard.", notify.MaxHourlyMails, about, further)},
		Button:     "View application", Link: p.link(""), Closing: p.closing(),
	}
}

func (p noticePlace) closing() []string {
	return []string{"You get this mail because of your settings. Change them or unsubscribe under Your account: " + p.base + PreferencesPath}
}

// facts are pairs of labels and values. Empty values are left out.
func facts(pairs ...string) (list []letters.Fact) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, letters.Fact{Label: pairs[i], Value: pairs[i+1]})
		}
	}
	return list
}

// credits are nanocredits as people read them.
func credits(nanocredits string) string {
	if amount, ok := metering.ParseAmount(nanocredits); ok {
		return amount.Credits()
	}
	return ""
}
