package keys

import (
	"purser/fault"
	"purser/tenancy"
)

// Preset is a set of permissions that people pick by its purpose. It is kept as
// this text, which is also what the command line takes.
type Preset string

// The presets. Custom has no permissions of its own: they are chosen one by one.
const (
	Setup     Preset = "setup"
	Ingestion Preset = "ingestion"
	ReadOnly  Preset = "read-only"
	Custom    Preset = "custom"
)

// Presets lists them in the order in which they are offered.
func Presets() []Preset { return []Preset{Setup, Ingestion, ReadOnly, Custom} }

func ParsePreset(text string) (Preset, error) {
	switch p := Preset(text); p {
	case Setup, Ingestion, ReadOnly, Custom:
		return p, nil
	default:
		return "", fault.Newf(fault.InvalidRequest,
			"Unknown preset %.40q. Use %s, %s, %s or %s.", text, Setup, Ingestion, ReadOnly, Custom)
	}
}

// Title is the preset's name for people.
func (p Preset) Title() string {
	switch p {
	case Setup:
		return "Setup and ingestion"
	case Ingestion:
		return "Ingestion"
	case ReadOnly:
		return "Read only"
	default:
		return "Custom"
	}
}

// Permissions is what a key made from the preset today gets. Keys made earlier
// keep what they got then.
func (p Preset) Permissions() tenancy.Permissions {
	switch p {
	case Setup:
		return tenancy.APIPermissions()
	case Ingestion:
		return tenancy.PermissionsOf(tenancy.EventsIngest)
	case ReadOnly:
		return tenancy.ReadPermissions()
	default:
		return tenancy.Permissions{}
	}
}
