package store_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"purser/fault"
	"purser/metering"
	"purser/store"
	"purser/store/storetest"
)

// TestPoisonHarmsNoOtherRequest gives the database a rule that one use of a full batch
// breaks.
func TestPoisonHarmsNoOtherRequest(t *testing.T) {
	t.Parallel()
	const requests, wallets = 60, 7
	const rule = `ALTER TABLE usage_events ADD CONSTRAINT no_poison CHECK (event_id <> 'poison')`
	// What Postgres or Citus cannot run is refused as well, and not retried until the
	// deadline.
	const unsupported = `
		CREATE FUNCTION refuse_poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.event_id = 'poison' THEN RAISE 'unsupported' USING ERRCODE = '0A000'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER refuse_poison BEFORE INSERT ON usage_events FOR EACH ROW EXECUTE FUNCTION refuse_poison()`
	type way struct {
		name string
		rule string
		warm bool
	}
	ways := []way{{"in a batch under locks", rule, false}, {"in a batch from memory", rule, true}}
	if !storetest.Distributed(t) { // Citus has no triggers to imitate its refusals with
		ways = append(ways, way{"as an unsupported statement, in a batch from memory", unsupported, true})
	}
	for _, c := range ways {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := storetest.FreshURL(t)
			s := newShopOfOneLane(t, url, 1)
			n := s.nodes[0]
			storetest.Exec(t, url, c.rule)
			s.credit(t, "gate", 1000)
			for w := range wallets {
				s.credit(t, numbered("wallet", w), requests*messagePrice)
				s.warm(t, n, numbered("wallet", w), c.warm)
			}
			batch := make([]store.Usage, requests)
			for i := range batch {
				batch[i] = s.message(numbered("wallet", i%wallets), numbered("event", i))
			}
			batch[requests/3].EventID = "poison"
			outcomes := s.inOneBatch(t, url, n, "gate", batch, nil)
			for i, o := range outcomes {
				if i == requests/3 {
					var broken *pgconn.PgError
					var refused *fault.Fault
					if !errors.As(o.err, &broken) || errors.As(o.err, &refused) {
						t.Errorf("the poison is %s: %v", o, o.err)
					}
				} else if o.d.Verdict != metering.Accepted {
					t.Errorf("%q is %s: %v", o.use.EventID, o, o.err)
				}
			}
			if splits := n.usage.Splits(); splits == 0 {
				t.Error("the split was not counted")
			}
			stored := s.storedEvents(t, connect(t, url))
			if len(stored["poison"]) != 0 {
				t.Error("the poison is stored")
			}
			soundBooks(t, url, s.tenant)

			// Alone it fails alone, and what was wrong with it is forgotten.
			for range 2 {
				if o := trackOutcome(n, s.message("wallet 0", "poison")); o.err == nil {
					t.Errorf("the poison alone is %s", o)
				}
				mustAccept(t, n, s.message("wallet 0", freshID()))
			}
			soundBooks(t, url, s.tenant)
		})
	}
}

func TestABatchIsSplitBetweenUnits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 8).Draw(t, "units")
		boundaries, end := []int{}, 0
		for _, size := range units {
			boundaries = append(boundaries, end)
			end += size
		}
		point := store.SplitPoint(units...)
		if len(units) == 1 && point == 0 {
			return
		}
		if !slices.Contains(boundaries[1:], point) {
			t.Errorf("units of %v are split at %d", units, point)
		}
	})
}
