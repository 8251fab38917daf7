package accounts

import (
	"net/netip"
	"sync/atomic"
	"time"

	"purser/ids"
	"purser/web/site"
)

// Pages are the pages of users and organizations.
type Pages struct {
	*site.Site
	passwords *passwords
	networks  *site.Limits[netip.Prefix]
	alarm     alarm
	setUp     atomic.Bool // there is an account

	newOrganizations bool
	restored         func(app ids.ID)
}

// New creates the pages. With newOrganizations, everyone with an account can create them.
func New(s *site.Site, newOrganizations bool) *Pages {
	return &Pages{
		Site: s, passwords: newPasswords(), networks: site.NewLimits[netip.Prefix](attemptsPerMinute, time.Minute),
		newOrganizations: newOrganizations, restored: func(ids.ID) {},
	}
}

// OnRestore is told which application was restored. It is set before the first request.
func (s *Pages) OnRestore(restored func(app ids.ID)) { s.restored = restored }
