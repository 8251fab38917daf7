package tenancy

import "testing"

func TestMembersChooseTheirMails(t *testing.T) {
	t.Parallel()
	owner, admin := Member{Access: Access{Role: Owner}}, Member{Access: Access{Role: Admin}}
	blind := Member{Access: Access{Role: Custom, Custom: PermissionsOf(CreditsRead)}}
	for name, c := range map[string]struct {
		member Member
		chosen MailPreferences
		live   bool
		want   [3]bool // by MailTopics
	}{
		"owners get mails about webhooks and keys":      {owner, nil, false, [3]bool{false, true, true}},
		"others get none":                               {admin, nil, true, [3]bool{}},
		"an owner may want nothing":                     {owner, MailPreferences{MailWebhooks: MailNone, MailKeys: MailNone}, true, [3]bool{}},
		"all of every application":                      {admin, MailPreferences{MailAlerts: MailAll, MailWebhooks: MailAll, MailKeys: MailAll}, false, [3]bool{true, true, true}},
		"live applications only":                        {admin, MailPreferences{MailAlerts: MailLive, MailKeys: MailLive}, true, [3]bool{true, false, true}},
		"not the others":                                {admin, MailPreferences{MailAlerts: MailLive, MailKeys: MailLive}, false, [3]bool{}},
		"no one is mailed what they may not read":       {blind, MailPreferences{MailAlerts: MailAll, MailWebhooks: MailAll, MailKeys: MailAll}, true, [3]bool{}},
		"support may read balances and no list of keys": {Member{Access: Access{Role: Support}}, MailPreferences{MailAlerts: MailAll, MailKeys: MailAll}, true, [3]bool{true, false, false}},
	} {
		for i, topic := range MailTopics() {
			if got := c.member.GetsMail(topic, c.chosen, c.live); got != c.want[i] {
				t.Errorf("%s: %s is %t", name, topic, got)
			}
		}
	}
	for _, text := range []string{"", "All", "everything"} {
		if _, err := ParseMailScope(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
