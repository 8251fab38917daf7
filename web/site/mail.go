package site

import (
	"purser/mail"
	"purser/store/people"
	letters "purser/views/mail"
	accountpage "purser/views/page/account"
)

// SealMails makes the rows of a letter to each address, for the transaction that it
// reports on. Without an SMTP server there are none.
func (req *Request) SealMails(kind mail.Kind, letter letters.Letter, until int64, to ...string) ([]people.Mail, error) {
	if req.Site.Mail == nil {
		return nil, nil
	}
	mails := make([]people.Mail, 0, len(to))
	for _, address := range to {
		m, err := req.Site.Mail.Seal(kind, address, letter, until)
		if err != nil {
			return nil, err
		}
		mails = append(mails, m)
	}
	return mails, nil
}

// SecurityNotice is a letter to the signed-in user about their own account.
func (req *Request) SecurityNotice(letter letters.Letter) ([]people.Mail, error) {
	return req.SealMails(mail.Security, letter, 0, req.User.Email)
}

// Where is where the request comes from.
func (req *Request) Where() mail.Where {
	return mail.Where{At: req.Site.Now(), Address: req.Bearer.Address, Agent: accountpage.BrowserName(req.Bearer.agent)}
}
