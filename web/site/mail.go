package site

import (
	"math"
	"time"

	"purser/fault"
	"purser/httpd"
	"purser/mail"
	"purser/store/people"
	"purser/views/component"
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

// noticesAtOnce and noticeInterval limit the notices that a user causes by what costs no
// password: their address may be unverified, and mails of others wait behind them. Each node
// counts its own.
const (
	noticesAtOnce  = 100
	noticeInterval = 6 * time.Second
)

// LimitedNotices are the notices of an action. Past the limit the action is refused: without
// its notice it must not happen.
func (req *Request) LimitedNotices(letter letters.Letter, to ...string) ([]people.Mail, error) {
	if req.Site.Mail == nil {
		return nil, nil
	}
	if wait := req.Site.notices.Take(req.User.ID, httpd.Claim{Tokens: int64(len(to))}).Refuse; wait > 0 {
		return nil, &httpd.WaitError{
			Fault: fault.Newf(fault.RateLimited, "Your account sent many security notices by email. Nothing was changed. Try again in %s.",
				component.Counted(int64(math.Ceil(wait.Minutes())), "minute", "minutes")),
			Wait: wait,
		}
	}
	return req.SealMails(mail.Security, letter, 0, to...)
}

// Where is where the request comes from.
func (req *Request) Where() mail.Where {
	return mail.Where{At: req.Site.Now(), Address: req.Bearer.Address, Agent: accountpage.BrowserName(req.Bearer.agent)}
}
