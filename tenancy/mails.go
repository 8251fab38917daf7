package tenancy

import "purser/fault"

// MailTopic is what a mail to members is about.
type MailTopic string

const (
	MailAlerts   MailTopic = "alerts"   // a low or exhausted balance, a used allowance
	MailWebhooks MailTopic = "webhooks" // a paused webhook endpoint
	MailKeys     MailTopic = "keys"     // an API key that expires soon
)

func MailTopics() []MailTopic { return []MailTopic{MailAlerts, MailWebhooks, MailKeys} }

// MailScope is which applications of an organization a member gets mails about.
type MailScope string

// The scopes. Empty is the default of the topic.
const (
	MailNone MailScope = "none"
	MailLive MailScope = "live"
	MailAll  MailScope = "all"
)

func ParseMailScope(text string) (MailScope, error) {
	switch s := MailScope(text); s {
	case MailNone, MailLive, MailAll:
		return s, nil
	}
	return "", fault.Newf(fault.InvalidRequest, "Unknown choice %.40q.", text)
}

// MailPreferences are a member's choices in one organization.
type MailPreferences map[MailTopic]MailScope

// MailScope is what the member chose for a topic, or its default: owners get mails about
// webhooks and keys, and no one gets alerts, which grow with the customers.
func (m Member) MailScope(topic MailTopic, chosen MailPreferences) MailScope {
	switch scope := chosen[topic]; {
	case scope != "":
		return scope
	case m.Role == Owner && topic != MailAlerts:
		return MailAll
	default:
		return MailNone
	}
}

// mailNeeds is what a member has to be allowed to read to get mails about it.
var mailNeeds = map[MailTopic]Permission{MailAlerts: WalletsRead, MailWebhooks: NotificationsRead, MailKeys: KeysRead}

// MayMail reports whether the member may get mails about a topic at all.
func (m Member) MayMail(topic MailTopic) bool { return m.May(mailNeeds[topic]) }

// GetsMail reports whether the member gets a mail about a topic of an application.
func (m Member) GetsMail(topic MailTopic, chosen MailPreferences, live bool) bool {
	if !m.MayMail(topic) {
		return false
	}
	scope := m.MailScope(topic, chosen)
	return scope == MailAll || scope == MailLive && live
}
