package web

import (
	"purser/mail"
	"purser/store/people"
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
