package store_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/keys"
	"purser/metering"
	"purser/store/payments"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
)

func TestArchivedApplications(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	usage := openUsage(t, db)

	t.Run("refuse their keys until they are restored", func(t *testing.T) {
		h := newFixture(t, db, usage)
		h.application.Live = false
		gone, _ := h.newKey(t, keys.Setup)
		_, err := h.RevokeKey(t.Context(), gone.ID, moment)
		noError(t, err)
		warm, err := usage.Track(h.useOf("messages", "fills the cache")) // with the key as it is
		noError(t, err)
		noError(t, warm.Err())
		noError(t, h.By(actor).Archive(t.Context(), h.application, moment))
		_, used := h.UseKey(t.Context(), h.key.ID, moment)
		_, tracked := usage.Track(h.useOf("messages", "while archived"))
		for name, err := range map[string]error{"a request": used, "an event": tracked} {
			if !fault.Is(err, fault.RevokedAPIKey) || !strings.Contains(err.Error(), "archived") {
				t.Errorf("%s gets %v", name, err)
			}
		}
		stored, err := h.Key(t.Context(), h.key.ID)
		noError(t, err)
		if got := stored.Status(moment); got != keys.Archived {
			t.Errorf("the key is %s", got)
		}

		noError(t, h.By(actor).Restore(t.Context()))
		_, err = h.UseKey(t.Context(), h.key.ID, moment)
		noError(t, err)
		decision, err := usage.Track(h.useOf("messages", "after it was restored"))
		noError(t, err)
		noError(t, decision.Err())
		_, err = h.UseKey(t.Context(), gone.ID, moment)
		wantFault(t, err, fault.RevokedAPIKey)
		if stored, err := h.Key(t.Context(), gone.ID); err != nil || stored.Status(moment-1) != keys.Revoked { // also by a clock that is behind
			t.Errorf("a key that was revoked before is %s, %v", stored.Status(moment-1), err)
		}
	})

	t.Run("are changed by no person, and by no key on its way", func(t *testing.T) {
		h := newFixture(t, db, usage)
		h.application.Live = false
		noError(t, h.By(actor).Archive(t.Context(), h.application, moment))
		_, err := h.By(actor).UpdateCredit(t.Context(), h.credit.Key, metering.CreditPatch{Name: new("Changed")})
		wantFault(t, err, fault.Archived)
		wantFault(t, orgAs(db, h.owner).UpdateApplication(t.Context(), h.application), fault.Archived)
		wantFault(t, h.By(actor).Archive(t.Context(), h.application, moment), fault.Archived)
		if credit, err := h.Credit(t.Context(), h.credit.Key); err != nil || credit.Name == "Changed" {
			t.Errorf("the credit is %+v, %v", credit, err)
		}
		noError(t, h.By(actor).Restore(t.Context()))
		noError(t, h.By(actor).Restore(t.Context())) // a form that was sent twice
		_, err = h.By(actor).UpdateCredit(t.Context(), h.credit.Key, metering.CreditPatch{Name: new("Changed")})
		noError(t, err)
		log := texts(t, connect(t, storetest.URL(t)), `SELECT action FROM audit_entries WHERE org_id = $1 AND action LIKE 'application.%' ORDER BY number`, h.org.ID)
		if got := strings.Join(log, " "); got != "application.archive application.restore" {
			t.Errorf("the log has %s", got)
		}
	})

	t.Run("keep revoked what is revoked meanwhile", func(t *testing.T) {
		for name, revoke := range map[string]func(fixture) error{
			"one key": func(h fixture) error {
				_, err := h.By(actor).RevokeKey(t.Context(), h.key.ID, moment)
				return err
			},
			"all keys": func(h fixture) error {
				_, err := h.By(actor).RevokeKeys(t.Context(), moment)
				return err
			},
		} {
			h := newFixture(t, db, usage)
			h.application.Live = false
			noError(t, h.By(actor).Archive(t.Context(), h.application, moment))
			noError(t, revoke(h))
			noError(t, h.By(actor).Restore(t.Context()))
			stored, err := h.Key(t.Context(), h.key.ID)
			noError(t, err)
			if got := stored.Status(moment - 1); got != keys.Revoked { // also by a clock that is behind
				t.Errorf("%s: it is %s after the restore", name, got)
			}
		}
	})

	t.Run("have no live subscription and no payment in flight, if they are live", func(t *testing.T) {
		h := newFixture(t, db, usage)
		expired, _, err := keys.New(keys.Spec{ID: ids.New(), App: h.application, Name: "Old", Preset: keys.Setup, ExpiresAt: moment}, tenancy.AllPermissions(), moment-1, rand.Reader)
		noError(t, err)
		noError(t, h.CreateKey(t.Context(), expired))
		replaced, _ := h.newKey(t, keys.Setup)
		_, err = h.RotateKey(t.Context(), replaced.ID, func(old keys.APIKey) (keys.Rotated, error) {
			return keys.Rotate(old, keys.Rotation{ID: ids.New(), Overlap: keys.OneHour}, tenancy.AllPermissions(), moment-3_600_000, rand.Reader)
		})
		noError(t, err)
		impact, err := h.Impact(t.Context(), moment)
		noError(t, err)
		if impact.Keys != 2 || impact.Wallets == 0 || impact.PaidSubscriptions == 0 || impact.OpenPayments == 0 {
			t.Errorf("the impact is %+v", impact)
		}
		live := h.application
		live.Live = true
		wantFault(t, h.By(actor).Archive(t.Context(), live, moment), fault.ProviderInUse)
		_, err = h.UseKey(t.Context(), h.key.ID, moment)
		noError(t, err)
	})

	t.Run("begin no payment whose key was checked before", func(t *testing.T) {
		s := newStorefront(t, db)
		s.application.Live = false
		noError(t, s.By(actor).Archive(t.Context(), s.application, moment))
		op := opOf(billing.OperationCheckout, "on its way")
		begin := func() error {
			_, _, err := s.Payments().Begin(t.Context(), payments.BeginInput{
				Fence: s.lease(t, "identity:ann"), Identity: "ann", Op: op, Now: moment,
				Decide: func(payments.CustomerState) (payments.Decision, error) { return payments.Decision{Operation: op}, nil },
			})
			return err
		}
		wantFault(t, begin(), fault.Archived)
		noError(t, s.By(actor).Restore(t.Context()))
		noError(t, begin())
	})

	t.Run("have no working key that was created at the same time", func(t *testing.T) {
		h := newTenant(t, db)
		const makers = 8
		made := make([]ids.ID, makers)
		atOnce(makers+1, func(i int) {
			if i == makers {
				if err := h.By(actor).Archive(t.Context(), h.application, moment); err != nil {
					t.Error(err)
				}
				return
			}
			key, _, err := keys.New(keys.Spec{ID: ids.New(), App: h.application, Name: "Server", Preset: keys.Setup}, tenancy.AllPermissions(), moment, rand.Reader)
			if err == nil {
				err = h.By(actor).CreateKey(t.Context(), key)
			}
			if err == nil {
				made[i] = key.ID
			} else if !fault.Is(err, fault.Archived) {
				t.Error(err)
			}
		})
		for _, id := range made {
			if id.IsZero() {
				continue
			}
			_, err := h.UseKey(t.Context(), id, moment)
			wantFault(t, err, fault.RevokedAPIKey)
		}
	})
}

func TestNamesOfArchivedApplicationsAreFree(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h := newTenant(t, db)
	handle := orgAs(db, newMember(t, db, h.org, tenancy.Owner))
	noError(t, h.By(actor).Archive(t.Context(), h.application, moment))
	draft, err := tenancy.NewApplication(ids.New(), h.org, h.application.Name, h.application.Live, moment)
	noError(t, err)
	next, err := handle.CreateApplication(t.Context(), draft)
	noError(t, err)
	found, err := db.Directory().ProvisionIn(t.Context(), people.OrgRef{ID: h.org.ID}, h.org, draft)
	if err != nil || found.ID != next.ID || next.Slug == h.application.Slug {
		t.Errorf("the command line finds %+v, %v", found, err)
	}
}

func TestArchivedOrganizations(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	h := newTenant(t, db)
	owner, leaver := newMember(t, db, h.org, tenancy.Owner), newMember(t, db, h.org, tenancy.Support)
	handle := orgAs(db, owner)

	wantFault(t, handle.Archive(t.Context(), moment), fault.Archived)
	noError(t, h.By(actor).Archive(t.Context(), h.application, moment))
	noError(t, handle.Archive(t.Context(), moment))
	if org, err := handle.Organization(t.Context()); err != nil || org.ArchivedAt != moment {
		t.Errorf("it is %+v, %v", org, err)
	}

	wantFault(t, handle.Rename(t.Context(), "Changed"), fault.Archived)
	more, err := tenancy.NewApplication(ids.New(), h.org, "More", false, moment)
	noError(t, err)
	_, err = handle.CreateApplication(t.Context(), more)
	wantFault(t, err, fault.Archived)
	wantFault(t, h.By(actor).Restore(t.Context()), fault.Archived)
	noError(t, handle.RemoveMember(t.Context(), leaver.UserID))

	noError(t, handle.Restore(t.Context()))
	noError(t, handle.Rename(t.Context(), "Changed"))
	noError(t, h.By(actor).Restore(t.Context()))
	if v, err := handle.VerifyAudit(t.Context()); err != nil || len(v.Differences) > 0 {
		t.Errorf("the log: %+v, %v", v, err)
	}
}
