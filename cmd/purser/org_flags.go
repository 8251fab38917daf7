package main

import (
	"errors"
	"flag"
	"fmt"
	"strings"

	"purser/ids"
	"purser/store/people"
	"purser/tenancy"
)

// orgFlags identify an organization. A slug has its own flag: members choose the names
// that slugs derive from, so a slug must not be taken for a name.
type orgFlags struct {
	org  string
	slug string
}

func (o *orgFlags) define(flags *flag.FlagSet) {
	flags.StringVar(&o.org, "org", "", "id of the organization, or the name given by the command line or setup")
	flags.StringVar(&o.slug, "org-slug", "", "slug of the organization, as in its URLs")
}

// ref parses the flags.
func (o orgFlags) ref() (people.OrgRef, error) {
	switch {
	case o.org != "" && o.slug != "":
		return people.OrgRef{}, errors.New("use --org or --org-slug, not both")
	case o.slug != "":
		return people.OrgRef{Slug: o.slug}, nil
	case strings.HasPrefix(o.org, ids.Organization+"_"):
		id, err := ids.Parse(ids.Organization, o.org)
		if err != nil {
			return people.OrgRef{}, fmt.Errorf("--org: %q is not the id of an organization", o.org)
		}
		return people.OrgRef{ID: id}, nil
	}
	name, err := tenancy.ParseName(o.org)
	if err != nil {
		return people.OrgRef{}, fmt.Errorf("--org: %w", err)
	}
	return people.OrgRef{Name: name}, nil
}
