package mail

import (
	"context"
	"crypto/rand"
	"time"

	"purser/ids"
	"purser/tenancy/credential"
	letters "purser/views/mail"
)

func InvitationLetter(organization, inviter, role, link string, expiresAt int64) letters.Letter {
	return letters.Letter{
		Subject:    "You're invited to join " + letters.Name(organization),
		Paragraphs: []string{letters.Name(inviter) + " invited you to join the organization “" + letters.Name(organization) + "” on Purser as " + role + "."},
		Button:     "Accept invitation", Link: link,
		Closing: []string{
			"The link works once, until " + instant(expiresAt) + ". Anyone who has it can join, so don't forward this mail.",
			"If you don't know the sender, ignore this mail.",
		},
	}
}

// Where is where a change of an account came from.
type Where struct {
	At             int64
	Address, Agent string
}

// SignInLetter tells of a sign-in from a browser that is not known: the account has not
// used it, or not with its present password and authenticator.
func SignInLetter(where Where) letters.Letter {
	return notice("New sign-in to your Purser account",
		"Someone signed in to your Purser account from a browser that you haven't used before, or not since you changed your password or two-factor.",
		"If this was you, there is nothing to do. If not, change your password and end the session under Your account.", where)
}

func PasswordLetter(where Where) letters.Letter {
	return notice("Your Purser password was changed",
		"The password of your Purser account was changed. All other sessions were ended.",
		"If this wasn't you, ask an owner of your organization for help at once: they can revoke your access.", where)
}

// FactorLetter tells of a change to the second factor, which is a whole sentence.
func FactorLetter(change string, where Where) letters.Letter {
	return notice("Two-factor settings of your Purser account were changed", change,
		"If this wasn't you, change your password at once and ask an owner of your organization for help.", where)
}

func KeyLetter(key, application, organization, by, link string, where Where) letters.Letter {
	l := notice("New API key in "+letters.Name(application),
		"An API key was created in the application “"+letters.Name(application)+"” of “"+letters.Name(organization)+"”.",
		"If you don't expect this key, revoke it.", where)
	l.Facts = append([]letters.Fact{{Label: "Key", Value: letters.Name(key)}, {Label: "Created by", Value: by}}, l.Facts...)
	l.Button, l.Link = "View API keys", link
	return l
}

func notice(subject, text, advice string, where Where) letters.Letter {
	facts := []letters.Fact{{Label: "Time", Value: instant(where.At)}, {Label: "Network address", Value: where.Address}}
	if where.Agent != "" {
		facts = append(facts, letters.Fact{Label: "Browser", Value: where.Agent})
	}
	return letters.Letter{Subject: subject, Paragraphs: []string{text}, Facts: facts, Closing: []string{advice}}
}

func instant(at int64) string { return time.UnixMilli(at).UTC().Format("2 Jan 2006, 15:04 UTC") }

// ResetPath is the path of the page that replaces a forgotten password, before its token.
const ResetPath = "/reset/"

// resetLetter makes the link now, so that it exists nowhere but in the mail. An address
// without an account, or with enough links, gets none.
func (o *Outbox) resetLetter(ctx context.Context, id ids.ID, to string, now int64) (l letters.Letter, err error) {
	link, err := credential.NewLink(rand.Reader)
	if err != nil {
		return l, err
	}
	_, offered, err := o.options.Store.Auth().OfferReset(ctx, id, to, link.Hash(), now)
	if err != nil {
		return l, err
	}
	if !offered {
		return l, errDropped
	}
	return letters.Letter{
		Subject:    "Reset your Purser password",
		Paragraphs: []string{"Someone asked to reset the password of your Purser account. If this was you, choose a new password:"},
		Button:     "Reset password", Link: o.options.BaseURL + ResetPath + string(link),
		Closing: []string{
			"The link works once, for one hour. Your second factor stays as it is.",
			"If this wasn't you, ignore this mail. Your password stays as it is.",
		},
	}, nil
}
