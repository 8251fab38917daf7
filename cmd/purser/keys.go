package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"purser/ids"
	"purser/keys"
	"purser/store"
	"purser/store/people"
	"purser/tenancy"
)

// keyRequest holds the flags of 'purser keys create'.
type keyRequest struct {
	org     orgFlags
	app     string
	live    bool
	preset  string
	name    string
	expires time.Duration
	json    bool
}

// createKey creates an API key. It may grant any permission: its user has access to the
// whole installation.
func createKey(ctx context.Context, c config, args []string, stdout, stderr io.Writer) (err error) {
	var order keyRequest
	flags := flag.NewFlagSet("keys create", flag.ContinueOnError)
	order.org.define(flags)
	flags.StringVar(&order.app, "app", "", "name of the application")
	flags.BoolVar(&order.live, "live", false, "create a live application instead of a test one")
	flags.StringVar(&order.preset, "preset", "", "setup, ingestion or read-only")
	flags.StringVar(&order.name, "name", "command line", "name of the key")
	durationFlag(flags, &order.expires, "expires", "how long the key works, such as 720h (default forever)")
	flags.BoolVar(&order.json, "json", false, "print JSON")
	if err := c.parse(flags, args); err != nil {
		return err
	}
	if _, _, err := order.spec(0); err != nil {
		return err
	}
	db, err := openOrCreate(ctx, c, commandLog(stderr), stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	now := db.Clock().Now()
	spec, org, err := order.spec(now)
	if err != nil {
		return err
	}
	ref, err := order.org.ref()
	if err != nil {
		return err
	}
	if spec.App, err = db.Directory().ProvisionIn(ctx, ref, org, spec.App); err != nil {
		return err
	}
	key, secret, err := keys.New(spec, tenancy.AllPermissions(), now, rand.Reader)
	if err != nil {
		return err
	}
	if err := db.App(key.Scope).By(people.CommandLine(now)).CreateKey(ctx, key); err != nil {
		return err
	}
	if err := order.print(stdout, key, secret); err != nil {
		return err
	}
	if key.Scope.OrgID == org.ID {
		if err := reportNewOrganization(ctx, db.Store, org, stderr); err != nil {
			return err
		}
	}
	return reportMissingMembers(ctx, db.Store, key.Scope.OrgID, stderr)
}

// sameNameListed is how many organizations with the same name are listed.
const sameNameListed = 10

// reportNewOrganization prints that the organization was created, and the ids of others
// with the same name: a script that expects one of them would use an empty organization.
func reportNewOrganization(ctx context.Context, db *store.Store, org tenancy.Organization, stderr io.Writer) error {
	named, err := db.Directory().OrganizationsNamed(ctx, org.Name, sameNameListed+1)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Created the organization %s (%s).\n", org.Name, org.ID.Format(ids.Organization))
	others := slices.DeleteFunc(named, func(id ids.ID) bool { return id == org.ID })
	if len(others) > 0 {
		text += "Other organizations have the same name. To create keys in one of them, pass its id to --org:\n\n"
		for _, id := range others[:min(len(others), sameNameListed)] {
			text += "  " + id.Format(ids.Organization) + "\n"
		}
		text += "\n"
	}
	_, err = io.WriteString(stderr, text)
	return err
}

// reportMissingMembers prints that the organization has no member yet. None is added
// automatically: an installation may hold organizations of several owners.
func reportMissingMembers(ctx context.Context, db *store.Store, id ids.ID, stderr io.Writer) error {
	members, err := db.Org(id).Members(ctx)
	if err != nil || len(members) > 0 {
		return err
	}
	org, err := db.Org(id).Organization(ctx)
	if err != nil {
		return err
	}
	setUp, err := db.Auth().IsSetUp(ctx)
	if err != nil {
		return err
	}
	next := "To give it an owner, run"
	if !setUp {
		next = "The account that you create with the server's setup link becomes its owner. To give it another one later, run"
	}
	_, err = fmt.Fprintf(stderr, "%s has no members yet. %s\n\n"+
		"  purser users own --email ADDRESS --org %s\n", org.Name, next, id.Format(ids.Organization))
	return err
}

// spec validates the flags before the database is opened.
func (o keyRequest) spec(now int64) (keys.Spec, tenancy.Organization, error) {
	if o.org == (orgFlags{}) || o.app == "" || o.preset == "" {
		return keys.Spec{}, tenancy.Organization{}, errors.New("keys create needs --org (or --org-slug), --app and --preset")
	}
	ref, err := o.org.ref()
	if err != nil {
		return keys.Spec{}, tenancy.Organization{}, err
	}
	org, err := tenancy.NewOrganization(ids.New(), ref.String(), now)
	if err != nil {
		return keys.Spec{}, org, fmt.Errorf("--org: %w", err)
	}
	app, err := tenancy.NewApplication(ids.New(), org, o.app, o.live, now)
	if err != nil {
		return keys.Spec{}, org, fmt.Errorf("--app: %w", err)
	}
	preset, err := keys.ParsePreset(o.preset)
	if err != nil || preset == keys.Custom {
		return keys.Spec{}, org, errors.New("--preset must be setup, ingestion or read-only")
	}
	spec := keys.Spec{ID: ids.New(), App: app, Name: o.name, Preset: preset}
	if _, err := tenancy.ParseName(o.name); err != nil {
		return spec, org, fmt.Errorf("--name: %w", err)
	}
	if o.expires > 0 && o.expires < time.Millisecond {
		return spec, org, errors.New("--expires must be a positive duration, such as 720h")
	}
	if o.expires > 0 {
		spec.ExpiresAt = now + o.expires.Milliseconds()
	}
	return spec, org, nil
}

// print shows the secret, which is not stored.
func (o keyRequest) print(out io.Writer, key keys.APIKey, secret keys.Secret) error {
	if o.json {
		return json.NewEncoder(out).Encode(map[string]string{
			"orgId":  key.Scope.OrgID.Format(ids.Organization),
			"appId":  key.Scope.AppID.Format(ids.Application),
			"keyId":  key.ID.Format(ids.APIKey),
			"secret": secret.Reveal(),
		})
	}
	_, err := fmt.Fprintf(out, "Created key %s for application %s (%s).\nThe secret is shown only once. Store it on your servers:\n\n%s\n",
		key.ID.Format(ids.APIKey), o.app, key.Scope.AppID.Format(ids.Application), secret.Reveal())
	return err
}
