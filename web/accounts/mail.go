package accounts

import (
	"maps"

	"purser/store/people"
	"purser/tenancy"
	accountpage "purser/views/page/account"
	"purser/web/site"
)

// mailChoices are the mails that the user can choose, by organization. Without an SMTP
// server there are none.
func mailChoices(req *site.Request) (list []accountpage.MailChoices, err error) {
	if req.Site.Mail == nil {
		return nil, nil
	}
	memberships, err := req.UserStore().Memberships(req.Context)
	if err != nil {
		return nil, err
	}
	for _, m := range memberships {
		choices := accountpage.MailChoices{Organization: m.Organization.Name}
		for _, topic := range tenancy.MailTopics() {
			if m.Member.MayMail(topic) {
				choices.Topics = append(choices.Topics, accountpage.MailTopic{Field: mailField(m, topic), Topic: topic, Scope: m.Member.MailScope(topic, m.Chosen)})
			}
		}
		if len(choices.Topics) > 0 {
			list = append(list, choices)
		}
	}
	return list, nil
}

// mailField is the form's field of a topic.
func mailField(m people.Membership, topic tenancy.MailTopic) string {
	return string(topic) + "-" + m.Organization.Slug
}

// chooseMails stores what the user wants to be mailed about.
func (s *Pages) chooseMails(req *site.Request) (site.Response, error) {
	f := req.Form
	memberships, err := req.UserStore().Memberships(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	for _, m := range memberships {
		chosen := maps.Clone(m.Chosen)
		for _, topic := range tenancy.MailTopics() {
			text := f.Text(mailField(m, topic))
			if text == "" {
				continue // not on the page
			}
			if chosen[topic], err = tenancy.ParseMailScope(text); err != nil {
				return site.Response{}, err
			}
		}
		if maps.Equal(chosen, m.Chosen) {
			continue
		}
		if err := req.UserStore().ChooseMails(req.Context, m.Organization.ID, chosen); err != nil {
			return site.Response{}, err
		}
	}
	return req.Done("/account", "Mail settings saved.")
}
