package accounts

import (
	"net/netip"
	"sync/atomic"
	"time"

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
}

// New creates the pages. With newOrganizations, everyone with an account can create them.
func New(s *site.Site, newOrganizations bool) *Pages {
	return &Pages{Site: s, passwords: newPasswords(), networks: site.NewLimits[netip.Prefix](attemptsPerMinute, time.Minute), newOrganizations: newOrganizations}
}
