package store_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"purser/store"
	"purser/store/storetest"
)

// imitation stands in for the part of Citus that the distribution calls, with the
// refusals that were met. It shows the order and the number of the calls, and
// nothing of Citus itself: for that there is TestCitus.
var imitation = []string{
	`CREATE TABLE pg_dist_partition (number int GENERATED ALWAYS AS IDENTITY, logicalrel regclass PRIMARY KEY, colocated text)`,
	`CREATE FUNCTION create_distributed_table(table_name regclass, distribution_column text, colocate_with text) RETURNS void
	LANGUAGE plpgsql AS $$
	BEGIN
		IF distribution_column <> 'app_id' THEN
			RAISE 'the column is %', distribution_column;
		END IF;
		IF EXISTS (SELECT FROM pg_class WHERE oid = table_name AND relforcerowsecurity) THEN
			RAISE 'COPY FROM not supported with row-level security';
		END IF;
		IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = table_name AND contype = 'f'
				AND confrelid NOT IN (SELECT logicalrel FROM pg_dist_partition)) THEN
			RAISE 'referenced table must be a distributed table';
		END IF;
		IF colocate_with <> 'none' AND colocate_with::regclass NOT IN (SELECT logicalrel FROM pg_dist_partition) THEN
			RAISE 'relation % is not distributed', colocate_with;
		END IF;
		INSERT INTO pg_dist_partition (logicalrel, colocated) VALUES (table_name, colocate_with);
	END $$`,
}

func TestDistribute(t *testing.T) {
	t.Parallel()
	url := storetest.FreshURL(t)
	owner := connect(t, url)
	tables := tablesOfTenants(t, owner)
	distributed := func() []string {
		return texts(t, owner, `SELECT logicalrel::text FROM pg_dist_partition ORDER BY number`)
	}

	t.Run("refuses a database without Citus, and leaves it alone", func(t *testing.T) {
		err := store.Distribute(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), "no Citus") {
			t.Errorf("it says %v", err)
		}
		if problems := schemaProblems(t, owner, true); len(problems) > 0 {
			t.Error(problems)
		}
	})

	for _, sql := range imitation {
		exec(t, owner, sql)
	}

	t.Run("takes every table once, app_state first, also from several processes", func(t *testing.T) {
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() {
				if err := store.Distribute(t.Context(), url); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		got := distributed()
		if len(got) == 0 || got[0] != "app_state" {
			t.Errorf("it took %v", got)
		}
		if slices.Sort(got); !slices.Equal(got, tables) {
			t.Errorf("it took %v, not %v", got, tables)
		}
		if apart := texts(t, owner, `SELECT logicalrel::text FROM pg_dist_partition WHERE colocated <> 'app_state' AND logicalrel <> 'app_state'::regclass`); len(apart) > 0 {
			t.Errorf("%v are not with their application", apart)
		}
	})

	t.Run("leaves the walls as they are, but for the owner", func(t *testing.T) {
		for _, problem := range schemaProblems(t, owner, false) {
			t.Error(problem)
		}
	})

	t.Run("takes a table that came later, and no other again", func(t *testing.T) {
		exec(t, owner, `CREATE TABLE later (app_id uuid, id uuid, PRIMARY KEY (app_id, id), FOREIGN KEY (app_id) REFERENCES app_state)`)
		noError(t, store.Distribute(t.Context(), url))
		if got := distributed(); len(got) != len(tables)+1 || got[len(tables)] != "later" {
			t.Errorf("it took %v", got)
		}
	})

	t.Run("refuses tables that refer to each other", func(t *testing.T) {
		exec(t, owner, `CREATE TABLE circle (app_id uuid PRIMARY KEY)`)
		exec(t, owner, `ALTER TABLE circle ADD FOREIGN KEY (app_id) REFERENCES app_state`)
		exec(t, owner, `ALTER TABLE app_state ADD FOREIGN KEY (app_id) REFERENCES circle`)
		if err := store.Distribute(t.Context(), url); err == nil || !strings.Contains(err.Error(), "circle") {
			t.Errorf("it says %v", err)
		}
	})
}
