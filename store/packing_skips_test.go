package store_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"purser/ids"
	"purser/store"
	"purser/store/packing"
	"purser/store/storetest"
	"purser/store/verify"
)

// tried packs and returns why wallets were skipped, by their identity.
func (b *packedBooks) tried(t *testing.T) (r packing.Result, skipped map[string]string) {
	t.Helper()
	p := b.packer(t)
	skipped = map[string]string{}
	p.Skipped = func(wallet ids.ID, reason error) {
		skipped[texts(t, b.conn, `SELECT identity FROM wallets WHERE id = $1`, wallet)[0]] = reason.Error()
	}
	r, err := p.Pack(t.Context(), b.scope, b.before, b.before)
	noError(t, err)
	if r.Skipped != int64(len(skipped)) {
		t.Errorf("skipped %d wallets, reported %v", r.Skipped, skipped)
	}
	return r, skipped
}

// packedOf is how many events of a customer are packed.
func (b *packedBooks) packedOf(t *testing.T, identity string) string {
	t.Helper()
	return texts(t, b.conn, `SELECT coalesce(sum(p.events), 0)::text FROM packed_events p WHERE p.wallet_id = (SELECT id FROM wallets WHERE identity = $1)`, identity)[0]
}

// TestSkippedWalletsStayAsTheyAre has some wallets fail, each in one of several ways. The
// others are packed, the failed ones are as before, and the next run packs them.
func TestSkippedWalletsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	hour, identities := time.Now().Add(-time.Hour).UnixMilli(), b.customers(t, 9)
	random := rand.New(rand.NewPCG(storetest.Seed(t), 0))
	random.Shuffle(len(identities), func(i, j int) { identities[i], identities[j] = identities[j], identities[i] })
	failing := map[string]string{}
	for i, identity := range identities[:1+random.IntN(len(identities)-1)] {
		switch (i + random.IntN(2)) % 2 {
		case 0: // it has an entry that no verification has seen
			b.trackMore(t, []store.Usage{b.useOf(identity, packable(hour), 1)})
			failing[identity] = "not verified and sealed"
		default: // Postgres refuses its block
			wallet := texts(t, b.conn, `SELECT id::text FROM wallets WHERE identity = $1`, identity)[0]
			exec(t, b.conn, fmt.Sprintf(`ALTER TABLE packed_events ADD CONSTRAINT "no block of %s" CHECK (wallet_id <> '%s')`, identity, wallet))
			failing[identity] = "no block of"
		}
	}
	before := b.everything(t)
	warm := openEngine(t, b)
	check := func(failing map[string]string) {
		t.Helper()
		_, skipped := b.tried(t)
		if !slices.Equal(slices.Sorted(maps.Keys(skipped)), slices.Sorted(maps.Keys(failing))) {
			t.Errorf("skipped %v, want %v", skipped, failing)
		}
		for identity, reason := range skipped {
			if !strings.Contains(reason, failing[identity]) {
				t.Errorf("%s was skipped because of %q, want %q", identity, reason, failing[identity])
			}
		}
		for _, identity := range identities {
			if packed := b.packedOf(t, identity); (packed == "0") != (failing[identity] != "") {
				t.Errorf("%s events of %s are packed, failing %v", packed, identity, failing)
			}
		}
		b.places(t)
		for i, line := range b.everything(t) {
			if line != before[i] {
				t.Errorf("before:\n%s\nafter:\n%s", before[i], line)
			}
		}
		for i, use := range b.uses {
			if i >= anns {
				b.repeats(t, warm.Track, use, i)
			}
		}
		b.verify(t, verify.Options{})
		b.verify(t, verify.Options{New: true})
	}
	check(failing)
	check(failing) // a second run finds the same
	b.verify(t, verify.Options{New: true, Record: true})
	for identity, reason := range failing {
		if reason == "no block of" {
			exec(t, b.conn, fmt.Sprintf(`ALTER TABLE packed_events DROP CONSTRAINT "no block of %s"`, identity))
		}
	}
	check(nil)
	if r, _ := b.tried(t); r != (packing.Result{}) {
		t.Errorf("a run after it packed %+v", r)
	}
	if runs := texts(t, b.conn, `SELECT format('%s %s %s', run, done, skipped) FROM packed_runs`); !slices.Equal(runs, []string{"1 t 0"}) {
		t.Errorf("the runs are %v", runs)
	}
}

// customers adds wallets with events to pack, which are verified.
func (b *packedBooks) customers(t *testing.T, count int) (identities []string) {
	t.Helper()
	const each = 2*packing.MinBlock + 3
	hour := time.Now().Add(-time.Hour).UnixMilli()
	var uses []store.Usage
	for n := range count {
		identity := fmt.Sprint("customer ", n)
		identities = append(identities, identity)
		_, _, err := b.Deposit(t.Context(), store.Deposit{ID: ids.New(), Identity: identity, CreditKey: "tokens", Amount: 1_000_000, IdempotencyKey: new(freshID()), CreatedAt: time.Now().UnixMilli()})
		noError(t, err)
		for i := range each {
			uses = append(uses, b.useOf(identity, packable(hour+int64(i*n)), i))
		}
	}
	b.trackMore(t, uses)
	b.verify(t, verify.Options{New: true, Record: true})
	return identities
}

// TestErrorsOfTheDatabaseEndARun has every block fail as if all of the database did. The run
// ends with the first wallet, or with some when they are only locked, and can be continued.
func TestErrorsOfTheDatabaseEndARun(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	b.customers(t, 9)
	for _, failure := range []struct {
		state   string
		skipped int64
	}{{"53100", 0}, {"57014", 0}, {"25006", 0}, {"55P03", 4}} {
		exec(t, b.conn, fmt.Sprintf(`CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'failed' USING ERRCODE = '%s'; END $$`, failure.state))
		exec(t, b.conn, `CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON packed_events FOR EACH ROW EXECUTE FUNCTION fail()`)
		p, skipped := b.packer(t), int64(0)
		p.Skipped = func(ids.ID, error) { skipped++ }
		var refused *pgconn.PgError
		_, err := p.Pack(t.Context(), b.scope, b.before, b.before)
		if !errors.As(err, &refused) || refused.Code != failure.state || !p.Ends(t.Context(), err) || skipped != failure.skipped {
			t.Errorf("%s: %v, after %d wallets were skipped, want %d", failure.state, err, skipped, failure.skipped)
		}
	}
	exec(t, b.conn, `DROP FUNCTION fail CASCADE`)
	if _, skipped := b.tried(t); len(skipped) != 0 {
		t.Errorf("skipped %v", skipped)
	}
	b.places(t)
	b.verify(t, verify.Options{})
}

// trackMore adds events to the fixture that are packed too.
func (b *packedBooks) trackMore(t *testing.T, uses []store.Usage) {
	t.Helper()
	outcomes, err := b.usage.TrackBatch(fresh(uses))
	noError(t, err)
	for i, o := range outcomes {
		if o.Err != nil || o.Decision.Err() != nil {
			t.Fatalf("%+v: %+v", uses[i], o)
		}
	}
	b.uses, b.first = append(b.uses, uses...), append(b.first, outcomes...)
	b.before = time.Now().UnixMilli() + 1
	soon(t, "usage that is added up", func() bool { return b.settle(t).Until >= b.before })
}

// A migration changes events whose table refuses sessions of earlier releases.
func TestMigrationsChangeEventsBesidePackedOnes(t *testing.T) {
	t.Parallel()
	b := keepPackedBooks(t)
	b.pack(t)
	rows := texts(t, b.conn, `SELECT count(*)::text FROM usage_events`)[0]
	const name = "20261117000202"
	exec(t, b.conn, `DROP INDEX packed_events_by_transaction`)
	exec(t, b.conn, `DELETE FROM schema_migrations WHERE name = $1`, name)
	// A migration is recorded by its own session, in its own transaction.
	exec(t, b.conn, `CREATE TABLE changed (n bigint)`)
	exec(t, b.conn, `CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE n bigint;
		BEGIN
			UPDATE usage_events SET quantity = quantity;
			GET DIAGNOSTICS n = ROW_COUNT;
			INSERT INTO changed VALUES (n);
			RETURN NEW;
		END $$`)
	exec(t, b.conn, `CREATE TRIGGER change AFTER INSERT ON schema_migrations FOR EACH ROW EXECUTE FUNCTION change()`)
	noError(t, storetest.Migrate(t.Context(), b.url))
	if changed := texts(t, b.conn, `SELECT DISTINCT n::text FROM changed`); !slices.Equal(changed, []string{rows}) {
		t.Errorf("migrations changed %v events of %s", changed, rows)
	}
	exec(t, b.conn, `DROP FUNCTION change CASCADE`)
	exec(t, b.conn, `DROP TABLE changed`)
	if got := texts(t, b.conn, appliedNames); !slices.Equal(got, migrationNames(t)) {
		t.Errorf("applied are %v", got)
	}
	b.verify(t, verify.Options{})
	b.repeats(t, openEngine(t, b).Track, b.uses[1], 1)
}
