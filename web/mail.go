package web

import (
	"purser/ids"
	"purser/keys"
	"purser/mail"
	"purser/store/people"
	"purser/tenancy"
	letters "purser/views/mail"
	accountpage "purser/views/page/account"
)

// sealMails makes the rows of a letter to each address, for the transaction that it
// reports on. Without an SMTP server there are none.
func (req *request) sealMails(kind mail.Kind, letter letters.Letter, until int64, to ...string) ([]people.Mail, error) {
	if req.site.mail == nil {
		return nil, nil
	}
	mails := make([]people.Mail, 0, len(to))
	for _, address := range to {
		m, err := req.site.mail.Seal(kind, address, letter, until)
		if err != nil {
			return nil, err
		}
		mails = append(mails, m)
	}
	return mails, nil
}

// securityNotice is a letter to the signed-in user about their own account.
func (req *request) securityNotice(letter letters.Letter) ([]people.Mail, error) {
	return req.sealMails(mail.Security, letter, 0, req.user.Email)
}

// where is where the request comes from.
func (req *request) where() mail.Where {
	return mail.Where{At: req.site.now(), Address: req.bearer.address, Agent: accountpage.BrowserName(req.bearer.agent)}
}

// noticeSignIn makes the notice of a sign-in from a browser that the account has not used
// before. It is written together with the session.
func noticeSignIn(req *request, user ids.ID) error {
	if req.site.mail == nil || deviceOf(req, user) != "" {
		return nil
	}
	profile, err := req.site.store.User(user).Profile(req.context)
	if err != nil {
		return err
	}
	req.bearer.mails, err = req.sealMails(mail.Security, mail.SignInLetter(req.where()), 0, profile.Email)
	return err
}

// noticeKey makes the notices of a new API key: to the member who creates it, and to the
// owners of the organization.
func noticeKey(req *request, key keys.APIKey) ([]people.Mail, error) {
	if req.site.mail == nil {
		return nil, nil
	}
	roster, err := req.organization().Roster(req.context)
	if err != nil {
		return nil, err
	}
	to := []string{req.user.Email}
	for _, m := range roster {
		if m.Role == tenancy.Owner && m.UserID != req.user.ID && len(to) < maxKeyNotices {
			to = append(to, m.Email)
		}
	}
	letter := mail.KeyLetter(key.Name, req.app.Name, req.org.Name, req.user.Email, req.site.server.Address+req.appPath("keys"), req.where())
	return req.sealMails(mail.Security, letter, 0, to...)
}

// maxKeyNotices is how many people hear of a new key at most.
const maxKeyNotices = 20
