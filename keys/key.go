package keys

import (
	"io"

	"purser/fault"
	"purser/ids"
	"purser/tenancy"
)

// APIKey is what is kept of a key. Times are 0 when there is none.
type APIKey struct {
	ID          ids.ID
	Scope       tenancy.Scope
	Name        string
	Preset      Preset
	Permissions tenancy.Permissions // its own: a preset that grows later does not change it
	Live        bool
	Last4       string
	Hash        Hash
	CreatedBy   ids.ID // a user; zero when the command line made it
	CreatedAt   int64
	ExpiresAt   int64
	Revoked     bool  // for good, whatever a node's clock says, unless Archived
	Archived    bool  // revoked with its application, until that is restored
	RevokedAt   int64 // in the future while a rotation's overlap lasts
	LastUsedAt  int64 // to the minute
	Replaces    ids.ID
	ReplacedBy  ids.ID
}

// MaxKeys is how many keys of an application work at a time, and how many more work on
// beside their replacements.
const MaxKeys = 1_000

// lastMoment is the end of the year 9999, the latest time that the API takes.
const lastMoment = 253402300799999

// Spec is what someone asks for when they make a key.
type Spec struct {
	ID        ids.ID
	App       tenancy.Application // decides the scope, and whether the key is live
	Name      string
	Preset    Preset
	Custom    tenancy.Permissions // for the preset Custom alone
	ExpiresAt int64               // 0 for a key that does not expire
	CreatedBy ids.ID
}

// New creates a key and its secret, which is shown once. The key's permissions are
// limited to the creator's; the command line, run by the operator, passes all of them.
func New(spec Spec, creator tenancy.Permissions, now int64, random io.Reader) (APIKey, Secret, error) {
	name, err := tenancy.ParseName(spec.Name)
	if err != nil {
		return APIKey{}, Secret{}, err
	}
	permissions, err := spec.permissions()
	if err != nil {
		return APIKey{}, Secret{}, err
	}
	if spec.ExpiresAt != 0 && (spec.ExpiresAt <= now || spec.ExpiresAt > lastMoment) {
		return APIKey{}, Secret{}, fault.Newf(fault.InvalidRequest, "The expiry must be in the future and before the year 10000.")
	}
	return APIKey{
		ID:          spec.ID,
		Scope:       spec.App.Scope(),
		Name:        name,
		Preset:      spec.Preset,
		Permissions: permissions,
		Live:        spec.App.Live,
		CreatedBy:   spec.CreatedBy,
		CreatedAt:   now,
		ExpiresAt:   spec.ExpiresAt,
	}.issue(creator, random)
}

func (s Spec) permissions() (tenancy.Permissions, error) {
	if _, err := ParsePreset(string(s.Preset)); err != nil {
		return tenancy.Permissions{}, err
	}
	if s.Preset != Custom {
		if !s.Custom.IsEmpty() {
			return tenancy.Permissions{}, fault.Newf(fault.InvalidRequest, "Individual permissions are only for the custom preset.")
		}
		return s.Preset.Permissions(), nil
	}
	if s.Custom.IsEmpty() {
		return tenancy.Permissions{}, fault.Newf(fault.InvalidRequest, "Select at least one permission.")
	}
	if foreign := s.Custom.Minus(tenancy.APIPermissions()); !foreign.IsEmpty() {
		return tenancy.Permissions{}, fault.Newf(fault.InvalidRequest, "These permissions can't be given to keys: %s.", foreign)
	}
	return s.Custom, nil
}

// issue generates the key's secret. Every secret is issued here, so its recipient always
// may write keys and holds all permissions of the key.
func (k APIKey) issue(to tenancy.Permissions, random io.Reader) (APIKey, Secret, error) {
	if err := to.Require(tenancy.KeysWrite); err != nil {
		return APIKey{}, Secret{}, err
	}
	if err := to.CheckGrant(k.Permissions); err != nil {
		return APIKey{}, Secret{}, err
	}
	secret, err := Mint(random, k.Live)
	if err != nil {
		return APIKey{}, Secret{}, err
	}
	k.Hash, k.Last4 = secret.Hash(), secret.Last4()
	return k, secret, nil
}

// Masked shows the key as its secret shows itself, such as "psr_live_…9fQ2".
func (k APIKey) Masked() string { return masked(k.Live, k.Last4) }

// touchGrain is the resolution of LastUsedAt in milliseconds: a busy key costs one
// write a minute.
const touchGrain = 60_000

// TouchDue reports whether the time of last use has to be written.
func TouchDue(lastUsed, now int64) bool { return lastUsed == 0 || now-lastUsed >= touchGrain }
