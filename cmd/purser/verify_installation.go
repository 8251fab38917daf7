package main

import (
	"context"
	"errors"
	"fmt"

	"purser/ids"
	"purser/store"
)

// installation is the result of verifying everything outside applications.
type installation struct {
	differences []string
	ends        []string // the head of each organization's audit log
	// straysChecked reports whether rows of nonexistent applications were searched: that
	// requires a role that bypasses row-level security.
	straysChecked bool
}

// maxFailures is how many audit logs that could not be read are named.
const maxFailures = 10

// verifyInstallation searches for rows of nonexistent applications and verifies every
// audit log. What it could verify is in its result also when it fails.
func verifyInstallation(ctx context.Context, s *store.Store) (found installation, err error) {
	strays, checked, err := s.Installation().StrayApplications(ctx)
	if err != nil {
		return found, err
	}
	found.straysChecked = checked
	for _, stray := range strays {
		found.differences = append(found.differences,
			fmt.Sprintf("%s: %s has rows of it, but the application does not exist", stray.AppID.Format(ids.Application), stray.Table))
	}
	organizations, err := s.Directory().OrganizationIDs(ctx)
	if err != nil {
		return found, err
	}
	var failed []error
	for _, id := range organizations {
		v, err := s.Org(id).VerifyAudit(ctx)
		if err != nil {
			if len(failed) < maxFailures {
				failed = append(failed, fmt.Errorf("%s: %w", id.Format(ids.Organization), err))
			}
			if ctx.Err() != nil {
				break
			}
			continue
		}
		for _, d := range v.Differences {
			found.differences = append(found.differences, fmt.Sprintf("%s: the audit log is not whole: %s", id.Format(ids.Organization), d))
		}
		if v.Head.Number > 0 {
			found.ends = append(found.ends, fmt.Sprintf("%s: the audit log ends with entry %d, sealed %x.", id.Format(ids.Organization), v.Head.Number, v.Head.Seal))
		}
	}
	return found, errors.Join(failed...)
}
