package mail

import (
	"errors"
	"net"
	netmail "net/mail"
	"net/url"
	"strconv"
)

// Server is an SMTP server and how to speak to it.
type Server struct {
	Host           string
	Port           int
	ImplicitTLS    bool // TLS from the first byte; otherwise STARTTLS
	Plain          bool // no TLS at all
	User, Password string
}

// The usual ports.
const (
	submissionPort  = 587
	submissionsPort = 465
)

// ParseServer reads a URL such as smtps://user:password@mail.example.com. Errors do not
// contain the URL: it has a password.
func ParseServer(text string) (s Server, err error) {
	invalid := errors.New("must be a URL such as smtps://user:password@mail.example.com or smtp://user:password@mail.example.com:587")
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "smtp" && u.Scheme != "smtps") || u.Hostname() == "" || (u.Path != "" && u.Path != "/") || u.Fragment != "" {
		return s, invalid
	}
	s = Server{Host: u.Hostname(), Port: submissionPort, ImplicitTLS: u.Scheme == "smtps", User: u.User.Username()}
	s.Password, _ = u.User.Password()
	if s.ImplicitTLS {
		s.Port = submissionsPort
	}
	if u.Port() != "" {
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || port == 0 {
			return Server{}, invalid
		}
		s.Port = int(port)
	}
	switch u.RawQuery {
	case "":
	case "starttls=off":
		s.Plain = true
	default:
		return Server{}, invalid
	}
	switch {
	case s.Plain && s.ImplicitTLS:
		return Server{}, errors.New("must not have starttls=off: smtps:// always uses TLS")
	case s.Plain && s.User != "":
		return Server{}, errors.New("must not have a user together with starttls=off: the password would be sent in the clear")
	case (s.User == "") != (s.Password == ""):
		return Server{}, errors.New("must have a user and a password, or neither")
	}
	return s, nil
}

func (s Server) address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// ParseSender reads the address that mails come from, with or without a name: Purser
// <billing@example.com>.
func ParseSender(text string) (netmail.Address, error) {
	a, err := netmail.ParseAddress(text)
	if err != nil {
		return netmail.Address{}, errors.New("must be an address such as billing@example.com or Purser <billing@example.com>")
	}
	return *a, nil
}
