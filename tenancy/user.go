package tenancy

import (
	"strings"

	"purser/fault"
	"purser/ids"
)

// User is a person with an account. What they may do hangs on their
// memberships, one for each organization.
type User struct {
	ID        ids.ID
	Email     string // as ParseEmail gives it: one spelling for one account
	Name      string
	CreatedAt int64
}

func NewUser(id ids.ID, email, name string, now int64) (User, error) {
	email, err := ParseEmail(email)
	if err != nil {
		return User{}, err
	}
	name, err = ParseName(name)
	if err != nil {
		return User{}, err
	}
	return User{ID: id, Email: email, Name: name, CreatedAt: now}, nil
}

// The longest address that mail can be sent to, and the longest part of it
// before the @ (RFC 5321).
const (
	maxEmailLength     = 254
	maxLocalPartLength = 64
)

// ParseEmail reads an address into its one spelling: no space around it, lower
// case. Only the shape is checked; that it receives mail is for the mail to show.
//
// Letters outside ASCII are refused: some turn into ASCII ones in lower case
// (the Kelvin sign into k), and one person's address would pass for another's.
// A domain that needs them has an ASCII form.
func ParseEmail(text string) (string, error) {
	text = strings.TrimSpace(text)
	local, domain, _ := strings.Cut(text, "@")
	if len(text) > maxEmailLength || len(local) > maxLocalPartLength || strings.ContainsFunc(text, notInEmail) ||
		!dotted(local) || !dotted(domain) || strings.Contains(domain, "@") {
		return "", fault.Newf(fault.InvalidRequest, "Enter an email address such as name@example.com.")
	}
	return strings.ToLower(text), nil
}

func notInEmail(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune(`"(),:;<>[\]`, r)
}

// dotted reports whether text is words with one dot between them.
func dotted(text string) bool {
	return text != "" && text[0] != '.' && text[len(text)-1] != '.' && !strings.Contains(text, "..")
}
