package accounts

import (
	"sync/atomic"

	"purser/web/site"
)

// Options configures the pages.
type Options struct {
	// NewOrganizations lets everyone with an account create organizations.
	NewOrganizations bool
}

// Pages are the pages of users and organizations.
type Pages struct {
	*site.Site
	passwords *passwords
	networks  *networks
	alarm     alarm
	setUp     atomic.Bool // there is an account

	newOrganizations bool
}

// New creates the pages.
func New(s *site.Site, options Options) *Pages {
	return &Pages{Site: s, passwords: newPasswords(), networks: newNetworks(), newOrganizations: options.NewOrganizations}
}
