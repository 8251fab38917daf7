package accounts

import (
	"net/netip"
	"sync/atomic"
	"time"

	"purser/httpd"
	"purser/ids"
	"purser/web/site"
)

// Pages are the pages of users and organizations.
type Pages struct {
	*site.Site
	passwords *passwords
	networks  *httpd.Buckets[netip.Prefix] // attempts
	alarm     alarm
	setUp     atomic.Bool // there is an account

	newOrganizations bool
	restored         func(app ids.ID)
}

// New creates the pages. With newOrganizations, everyone with an account can create them.
func New(s *site.Site, newOrganizations bool) *Pages {
	return &Pages{
		Site: s, passwords: newPasswords(), networks: httpd.NewBuckets[netip.Prefix](time.Minute/attemptsPerMinute, attemptsPerMinute, s.Elapsed),
		newOrganizations: newOrganizations, restored: func(ids.ID) {},
	}
}

// OnRestore is called with each restored application. It is set before the first request.
func (s *Pages) OnRestore(restored func(app ids.ID)) { s.restored = restored }
