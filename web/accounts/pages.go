package accounts

import (
	"sync/atomic"

	"purser/ids"
	"purser/web/site"
)

// Pages are the pages of users and organizations.
type Pages struct {
	*site.Site
	passwords *passwords
	networks  *networks
	alarm     alarm
	setUp     atomic.Bool // there is an account

	newOrganizations bool
	restored         func(app ids.ID)
}

// New creates the pages. With newOrganizations, everyone with an account can create them.
func New(s *site.Site, newOrganizations bool) *Pages {
	return &Pages{Site: s, passwords: newPasswords(), networks: newNetworks(), newOrganizations: newOrganizations, restored: func(ids.ID) {}}
}

// OnRestore is called with each restored application. It is set before the first request.
func (s *Pages) OnRestore(restored func(app ids.ID)) { s.restored = restored }
