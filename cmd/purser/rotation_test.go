package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"purser/ids"
	"purser/mail"
	"purser/notify"
	"purser/store"
	"purser/store/payments"
	"purser/store/people"
	"purser/store/storetest"
	"purser/tenancy"
	"purser/tenancy/vault"
)

// sealedRows is an installation whose secrets are known: a person with an
// authenticator, a mail, and applications with a webhook endpoint and an account that
// replaced another.
type sealedRows struct {
	*testing.T
	db       *store.Store
	user     ids.ID
	apps     []tenancy.Scope
	accounts []ids.ID // the accounts, two for each application
}

const wasKey, isKey = secret("the key before, thirty-two bytes!"), secret("the key of now, thirty-two bytes!")

func vaultOf(t *testing.T, keys ...secret) *vault.Vault {
	t.Helper()
	var texts [][]byte
	for _, k := range keys {
		texts = append(texts, []byte(k))
	}
	v, err := vault.New(rand.Reader, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sealRows(t *testing.T, url string, applications int) sealedRows {
	t.Helper()
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	now := time.Now().UnixMilli()
	s := sealedRows{T: t, db: db, user: ids.New()}
	before := vaultOf(t, wasKey)
	seal := func(at vault.Place, text string) []byte {
		sealed, err := before.Seal(at, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	user, err := tenancy.NewUser(s.user, "ann@example.com", "Ann", now)
	check(err)
	storetest.CreateUser(t, url, user)
	session := ids.New()
	_, err = db.Auth().OpenSession(t.Context(), session.String(), people.Session{ID: session, UserID: s.user, CreatedAt: now, SeenAt: now, ExpiresAt: now + 1000}, []byte{1})
	check(err)
	check(db.User(s.user).AddFactor(t.Context(), people.Factor{SealedSeed: seal(vault.SeedOf(s.user), "seed")}, nil, session.String(), people.CommandLine(now)))
	letter := people.Mail{ID: ids.New(), Kind: "invite", CreatedAt: now + time.Hour.Milliseconds(), ExpiresAt: now + 2*time.Hour.Milliseconds()} // not due in the test
	letter.Sealed = seal(mail.Place(letter.ID), "letter")
	check(db.Outbox().Queue(t.Context(), letter))
	for range applications {
		org, err := tenancy.NewOrganization(ids.New(), "Org "+ids.New().String(), now)
		check(err)
		app, err := tenancy.NewApplication(ids.New(), org, "App", true, now)
		check(err)
		app, err = db.Directory().ProvisionIn(t.Context(), people.OrgRef{Name: org.Name}, org, app)
		check(err)
		s.apps = append(s.apps, app.Scope())
		endpoint := ids.New()
		at := vault.Place{Purpose: "webhook secret", Org: app.OrgID, App: app.ID, Row: endpoint}
		check(db.Notifications(app.Scope()).CreateEndpoint(t.Context(), notify.Endpoint{
			ID: endpoint, URL: "https://example.com", Status: notify.Enabled, SealedSecret: seal(at, "hook_new"), CreatedAt: now,
		}))
		storetest.Exec(t, url, `UPDATE webhook_endpoints SET previous_secret = $2 WHERE id = $1`, endpoint, seal(at, "hook_old"))
		for range 2 {
			id := ids.New()
			at := vault.Place{Org: app.OrgID, App: app.ID, Row: id}
			key, hook := at, at
			key.Purpose, hook.Purpose = "stripe api key", "stripe webhook secret"
			_, err := db.PaymentAccounts(app.Scope()).PutConnection(t.Context(), payments.Connection{
				ID: id, Mode: payments.StripeConnection, Live: true, AccountID: "acct_" + id.String(), SealedKey: seal(key, "sk_live_"+id.String()),
				Secrets: []payments.SealedSecret{{Sealed: seal(hook, "whsec_new")}, {Sealed: seal(hook, "whsec_old"), Until: 77}},
			}, now)
			check(err)
			s.accounts = append(s.accounts, id)
		}
	}
	return s
}

// readable counts the secrets that the key opens by itself, as what they were.
func (s sealedRows) readable(key secret) (number int) {
	s.Helper()
	v := vaultOf(s.T, key)
	read := func(at vault.Place, sealed []byte, want string) {
		text, err := v.Open(at, sealed)
		switch {
		case errors.Is(err, vault.ErrUnknownKey):
		case err != nil || string(text) != want:
			s.Errorf("%s came back as %q, %v", want, text, err)
		default:
			number++
		}
	}
	factor, err := s.db.User(s.user).Factor(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	read(vault.SeedOf(s.user), factor.SealedSeed, "seed")
	err = s.db.Outbox().Reseal(s.Context(), func(id ids.ID, sealed []byte) []byte {
		read(mail.Place(id), sealed, "letter")
		return nil
	})
	if err != nil {
		s.Fatal(err)
	}
	for _, scope := range s.apps {
		endpoints, err := s.db.Notifications(scope).Endpoints(s.Context())
		if err != nil || len(endpoints) != 1 {
			s.Fatalf("%+v, %v", endpoints, err)
		}
		at := vault.Place{Purpose: "webhook secret", Org: scope.OrgID, App: scope.AppID, Row: endpoints[0].ID}
		read(at, endpoints[0].SealedSecret, "hook_new")
		read(at, endpoints[0].SealedPrevious, "hook_old")
	}
	for i, id := range s.accounts {
		scope := s.apps[i/2]
		c, err := s.db.PaymentAccounts(scope).ConnectionByID(s.Context(), id)
		if err != nil || len(c.Secrets) != 2 || c.Secrets[1].Until != 77 {
			s.Fatalf("%+v, %v", c, err)
		}
		at := vault.Place{Org: scope.OrgID, App: scope.AppID, Row: id, Purpose: "stripe api key"}
		read(at, c.SealedKey, "sk_live_"+id.String())
		at.Purpose = "stripe webhook secret"
		read(at, c.Secrets[0].Sealed, "whsec_new")
		read(at, c.Secrets[1].Sealed, "whsec_old")
	}
	return number
}

// rotationOf is what a server does that has been given both keys.
func (s sealedRows) rotationOf(log *slog.Logger) rotation {
	s.Helper()
	seals := vaultOf(s.T, isKey, wasKey)
	p, err := newPayments(config{baseURL: "http://127.0.0.1:1"}, s.db, seals, isKey, newMetrics(), log)
	if err != nil {
		s.Fatal(err)
	}
	return rotation{s.db, p.cashier, p.deliveries, seals, log}
}

func TestAChangedKeySealsEverythingAnew(t *testing.T) {
	t.Parallel()
	const applications = 3
	const all = 2 + applications*(2+2*3)
	s := sealRows(t, storetest.FreshURL(t), applications)
	var said bytes.Buffer
	r := s.rotationOf(slog.New(slog.NewTextHandler(&said, nil)))
	if before, after := s.readable(wasKey), s.readable(isKey); before != all || after != 0 {
		t.Fatalf("at first the old key reads %d and the new one %d", before, after)
	}

	t.Run("and goes on where it was cut off", func(t *testing.T) {
		if _, _, err := r.cashier.Reseal(t.Context(), s.apps[1]); err != nil {
			t.Fatal(err)
		}
		if before, after := s.readable(wasKey), s.readable(isKey); before != all-6 || after != 6 {
			t.Fatalf("in between the old key reads %d and the new one %d", before, after)
		}
		cut, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.run(cut); err != nil || said.Len() > 0 {
			t.Errorf("%v, %s", err, said.String())
		}
	})
	t.Run("so that the old key can be taken away, and says so", func(t *testing.T) {
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if before, after := s.readable(wasKey), s.readable(isKey); before != 0 || after != all {
			t.Errorf("in the end the old key reads %d and the new one %d", before, after)
		}
		if text := said.String(); !strings.Contains(text, "remove PURSER_SECRET_KEY_PREVIOUS when every node has logged this") || !strings.Contains(text, "accounts=4 authenticators=1 unreadable=0 endpoints=3 mails=1") {
			t.Errorf("it says %s", text)
		}
	})
	t.Run("once", func(t *testing.T) {
		said.Reset()
		if err := r.run(t.Context()); err != nil || !strings.Contains(said.String(), "accounts=0 authenticators=0 unreadable=0") {
			t.Errorf("%v, %s", err, said.String())
		}
	})
	t.Run("but for what neither key can open, which is reported", func(t *testing.T) {
		_, err := s.db.PaymentAccounts(s.apps[0]).PutConnection(t.Context(), payments.Connection{
			ID: ids.New(), Mode: payments.StripeConnection, Live: true, AccountID: "acct_lost", SealedKey: []byte("of another age"),
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		said.Reset()
		if err := r.run(t.Context()); err != nil || !strings.Contains(said.String(), "level=ERROR") || !strings.Contains(said.String(), "acct_lost") ||
			!strings.Contains(said.String(), "unreadable=1") {
			t.Errorf("%v, %s", err, said.String())
		}
	})
}

func TestAServerWithBothKeysDoesSoByItself(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	s := sealRows(t, url, 1)
	startServer(t, "DATABASE_URL="+url, "PURSER_SECRET_KEY="+string(isKey), "PURSER_SECRET_KEY_PREVIOUS="+string(wasKey))
	eventually(t, "the new key reads everything", func() bool { return s.readable(isKey) == 10 })
}

func TestPassesOfARotationAreAddedUp(t *testing.T) {
	t.Parallel()
	var done resealCounts
	for range 2 {
		done.add(resealCounts{seeds: 1, accounts: 10, endpoints: 100, mails: 1000, lost: 7})
	}
	if want := (resealCounts{seeds: 2, accounts: 20, endpoints: 200, mails: 2000}); done != want || done.resealed() != 2222 {
		t.Errorf("%+v, %d in all", done, done.resealed())
	}
}
