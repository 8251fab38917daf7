package billing

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"purser/fault"
	"purser/metering"
)

// MaxItems is how many credits, features and plans an application has, of each kind.
const MaxItems = 10_000

// MaxCatalogItems is how many credits, features and plans a catalog that is read or
// applied as a whole can have, of each kind. MaxCatalogTerms is how many limits, grants and
// multipliers all of its plans can have together: it bounds the memory of a comparison.
const (
	MaxCatalogItems = 500
	MaxCatalogTerms = 20_000
)

// CatalogDraft describes a whole catalog by its keys. Of credits and features it has only
// what their creation takes.
type CatalogDraft struct {
	Credits  []metering.Credit
	Features []metering.Feature
	Plans    []PlanDraft
}

// CatalogState is the stored catalog of an application.
type CatalogState struct {
	Credits  []metering.Credit
	Features []metering.Feature
	Plans    []Plan
}

// Draft describes the catalog, to apply it to another application.
func (s CatalogState) Draft() CatalogDraft {
	d := CatalogDraft{Credits: s.Credits, Features: s.Features}
	for _, p := range s.Plans {
		d.Plans = append(d.Plans, PlanDraft{
			Key: p.Key, Name: p.Name, Price: p.Price, Limits: p.Limits, Grants: p.Grants, Multipliers: p.Multipliers,
			TopupsEnabled: p.TopupsEnabled, Active: p.Active,
		})
	}
	return d
}

// Version identifies the catalog's content: it changes with every revision of an item.
func (s CatalogState) Version() string {
	var lines []string
	add := func(kind CatalogKind, key string, revision int64) {
		lines = append(lines, string(kind)+" "+key+" "+strconv.FormatInt(revision, 10))
	}
	for _, c := range s.Credits {
		add(CatalogCredit, c.Key, c.Revision)
	}
	for _, f := range s.Features {
		add(CatalogFeature, f.Key, f.Revision)
	}
	for _, p := range s.Plans {
		add(CatalogPlan, p.Key, p.Revision)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:16])
}

// CheckSize refuses a catalog that is too large to be read or applied as a whole.
func (s CatalogState) CheckSize() error {
	return checkCatalogSize(len(s.Credits), len(s.Features), len(s.Plans), s.terms())
}

func checkCatalogSize(credits, features, plans, terms int) error {
	if max(credits, features, plans) > MaxCatalogItems || terms > MaxCatalogTerms {
		return fault.New(fault.CatalogTooLarge)
	}
	return nil
}

func (s CatalogState) terms() (count int) {
	for _, p := range s.Plans {
		count += p.TermCount()
	}
	return count
}

// TermCount is how many limits, grants and multipliers the plan has.
func (p Plan) TermCount() int { return len(p.Limits) + len(p.Grants) + len(p.Multipliers) }

// check refuses a draft that names an item twice, or that no catalog can be as large as.
func (d CatalogDraft) check() error {
	terms := 0
	for _, p := range d.Plans {
		terms += len(p.Limits) + len(p.Grants) + len(p.Multipliers)
	}
	if err := checkCatalogSize(len(d.Credits), len(d.Features), len(d.Plans), terms); err != nil {
		return err
	}
	for _, err := range []error{
		checkUnique("credits", "credit", d.Credits, func(c metering.Credit) string { return c.Key }),
		checkUnique("features", "feature", d.Features, func(f metering.Feature) string { return f.Key }),
		checkUnique("plans", "plan", d.Plans, func(p PlanDraft) string { return p.Key }),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}
