package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"purser/ids"
	"purser/store"
	"purser/store/embedded"
	"purser/store/internal/pg"
	"purser/store/storetest"
	"purser/store/verify"
)

// imitation stands in for the part of Citus that the distribution calls: its catalog
// with the columns of version 13.2, and its function with the refusals that were met. It
// shows the order and the number of the calls, and nothing of Citus itself: for that
// there is TestCitus.
var imitation = []string{
	`CREATE TABLE pg_dist_partition (logicalrelid regclass NOT NULL, partmethod "char" NOT NULL, partkey text,
		colocationid integer NOT NULL DEFAULT 0, repmodel "char" NOT NULL, autoconverted boolean NOT NULL DEFAULT false)`,
	`GRANT SELECT ON pg_dist_partition TO PUBLIC`,
	`CREATE FUNCTION create_distributed_table(table_name regclass, distribution_column text, distribution_type text DEFAULT 'hash',
		colocate_with text DEFAULT 'default', shard_count integer DEFAULT NULL) RETURNS void
	LANGUAGE plpgsql AS $$
	DECLARE
		place integer := 1;
	BEGIN
		IF distribution_column <> 'app_id' THEN
			RAISE 'the column is %', distribution_column;
		END IF;
		IF EXISTS (SELECT FROM pg_class WHERE oid = table_name AND relforcerowsecurity) THEN
			RAISE 'COPY FROM not supported with row-level security';
		END IF;
		IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = table_name AND contype = 'f'
				AND confrelid NOT IN (SELECT logicalrelid FROM pg_dist_partition)) THEN
			RAISE 'referenced table must be a distributed table';
		END IF;
		IF colocate_with <> 'none' THEN
			SELECT colocationid INTO STRICT place FROM pg_dist_partition WHERE logicalrelid = colocate_with::regclass;
		ELSIF EXISTS (SELECT FROM pg_dist_partition) THEN
			SELECT max(colocationid) + 1 INTO place FROM pg_dist_partition;
		END IF;
		INSERT INTO pg_dist_partition (logicalrelid, partmethod, colocationid, repmodel) VALUES (table_name, 'h', place, 's');
	END $$`,
	`CREATE SCHEMA imitated`,
	`GRANT USAGE ON SCHEMA imitated TO PUBLIC`,
	`ALTER DATABASE postgres SET search_path = public, imitated`,
	`CREATE VIEW imitated.pg_dist_shard AS SELECT logicalrelid, logicalrelid::oid::bigint AS shardid, '0' AS shardminvalue FROM pg_dist_partition`,
	`CREATE VIEW imitated.pg_dist_shard_placement AS SELECT shardid, 'localhost' AS nodename, 5432::bigint AS nodeport FROM imitated.pg_dist_shard`,
	`CREATE TABLE imitated.pg_dist_node (nodeid integer, groupid integer, nodename text, nodeport integer, noderack text, hasmetadata boolean,
		isactive boolean, noderole text, nodecluster name, metadatasynced boolean, shouldhaveshards boolean)`,
	`INSERT INTO imitated.pg_dist_node (nodeid, groupid, noderole, shouldhaveshards) VALUES
		(1, 0, 'primary', false), (2, 3, 'primary', true), (3, 5, 'primary', true), (4, 5, 'secondary', true)`,
	`CREATE TABLE imitated.pg_dist_placement (placementid bigint, shardid bigint, shardstate integer, shardlength bigint, groupid integer)`,
	`INSERT INTO imitated.pg_dist_placement (shardid, groupid) VALUES (0, 3), (1, 5)`,
	`CREATE FUNCTION get_shard_id_for_distribution_column(table_name regclass, distribution_value anyelement) RETURNS bigint
	LANGUAGE sql AS $$ SELECT get_byte(uuid_send(distribution_value::text::uuid), 15) % 2 $$`,
	`GRANT SELECT ON ALL TABLES IN SCHEMA imitated TO PUBLIC`,
	`CREATE FUNCTION shard_name(object_name regclass, shard_id bigint) RETURNS text LANGUAGE sql AS 'SELECT object_name::text'`,
	`CREATE FUNCTION master_run_on_worker(worker_name text[], port integer[], command text[], parallel boolean,
		OUT node_name text, OUT node_port integer, OUT success boolean, OUT result text) RETURNS SETOF record
	LANGUAGE plpgsql AS $$
	DECLARE
		one text;
	BEGIN
		FOREACH one IN ARRAY command LOOP
			EXECUTE one INTO result;
			success := true;
			RETURN NEXT;
		END LOOP;
	END $$`,
}

// On a server of its own: the distribution changes the serving role.
func TestDistribute(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(t.Context(), embedded.Options{Dir: storetest.DataDir(t)})
	noError(t, err)
	t.Cleanup(func() { noError(t, server.Stop(context.Background())) })
	url := server.URL("postgres")
	noError(t, storetest.Migrate(t.Context(), url))
	owner := connect(t, url)
	tables := tablesOfTenants(t, owner)
	distributed := func() []string {
		return texts(t, owner, `SELECT logicalrelid::text FROM pg_dist_partition ORDER BY ctid`)
	}
	setting := func(t *testing.T, name string) string {
		t.Helper()
		db := openStore(t, url)
		value, err := openUsage(t, db).Setting(t.Context(), name)
		noError(t, err)
		return value
	}

	t.Run("refuses a database without Citus, and leaves it alone", func(t *testing.T) {
		err := store.Distribute(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), "no Citus") {
			t.Errorf("it says %v", err)
		}
		if problems := schemaProblems(t, owner, true); len(problems) > 0 {
			t.Error(problems)
		}
		if mode := setting(t, "plan_cache_mode"); mode != "force_generic_plan" {
			t.Errorf("the hot path plans with %s", mode)
		}
	})

	for _, sql := range imitation {
		exec(t, owner, sql)
	}

	t.Run("is not begun by a start with the extension alone", func(t *testing.T) {
		noError(t, storetest.Migrate(t.Context(), url))
		if got := distributed(); len(got) != 0 {
			t.Errorf("it took %v", got)
		}
	})

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
		if apart := texts(t, owner, `SELECT logicalrelid::text FROM pg_dist_partition WHERE colocationid <> 1`); len(apart) > 0 {
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

	t.Run("lets the coordinator connect to workers as the serving role, with its limits", func(t *testing.T) {
		var mayLogIn bool
		noError(t, owner.QueryRow(t.Context(), `SELECT rolcanlogin FROM pg_roles WHERE rolname = $1`, store.AppRole).Scan(&mayLogIn))
		if !mayLogIn {
			t.Error("the role may not log in")
		}
		set := texts(t, owner, `SELECT split_part(unnest(setconfig), '=', 1) FROM pg_db_role_setting WHERE setrole = '`+store.AppRole+`'::regrole ORDER BY 1`)
		want := []string{"citus.enable_local_execution", "citus.propagate_set_commands", "idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout"}
		if !slices.Equal(set, want) {
			t.Errorf("the role has the settings %v", set)
		}
	})

	t.Run("changes how sessions plan and what they forward", func(t *testing.T) {
		for name, want := range map[string]string{"plan_cache_mode": "auto", "citus.propagate_set_commands": "local", "citus.enable_local_execution": "off"} {
			if got := setting(t, name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	})

	t.Run("leaves everything working, one application a batch", func(t *testing.T) {
		db := openStore(t, url)
		home := newFixture(t, db, openUsage(t, db))
		if wallet, err := home.Wallet(t.Context(), home.deposit.Identity); err != nil || len(wallet.Balances) != 1 {
			t.Errorf("the wallet is %+v, %v", wallet, err)
		}
	})

	t.Run("has lanes of its own for each worker", func(t *testing.T) {
		db := openStore(t, url)
		usage := openUsage(t, db)
		// A lookup that takes more than a second is repeated by a later request.
		placed := func(app ids.ID, place int) {
			t.Helper()
			soon(t, fmt.Sprint("an application at the place ", place), func() bool { return usage.Place(app) == place })
		}
		seen := map[int]bool{}
		for len(seen) < 2 {
			app := newTenant(t, db).application.ID
			place := int(app[15] % 2)
			placed(app, place)
			for i := range 10 {
				if lane := usage.LaneOf(app, numbered("wallet", i)); lane/store.SingleLanes != place {
					t.Errorf("a wallet at the place %d has the lane %d", place, lane)
				}
			}
			seen[place] = true
		}
		room, err := db.Connections(t.Context())
		noError(t, err)
		if more := room.Need - pg.DefaultConns - store.UsageConns; more != 9 { // 2 for writes, 7 for reads
			t.Errorf("a second worker needs %d connections more", more)
		}
		exec(t, owner, `UPDATE imitated.pg_dist_placement SET groupid = 8 - groupid`)
		app := newTenant(t, db).application.ID
		placed(app, 1-int(app[15]%2)) // after a move
	})

	t.Run("asks the shards for rows of applications that do not exist", func(t *testing.T) {
		findsStrayApplications(t, openStore(t, url), owner)
	})

	t.Run("names the application to the shards in reads of one statement", func(t *testing.T) {
		db := openStore(t, url)
		home := newTenant(t, db)
		// Citus forwards SET LOCAL to the shards but not set_config, after which the policies
		// there hide every row.
		const setConfig = ` EXECUTE ON FUNCTION set_config(text, text, boolean) `
		exec(t, owner, `REVOKE`+setConfig+`FROM PUBLIC`)
		_, _, err := home.Keys(t.Context(), store.Page{Limit: 1})
		exec(t, owner, `GRANT`+setConfig+`TO PUBLIC`)
		noError(t, err)
	})

	t.Run("is completed at the next start of the owner, and refused to others until then", func(t *testing.T) {
		exec(t, owner, `CREATE TABLE newest (app_id uuid, id uuid, PRIMARY KEY (app_id, id), FOREIGN KEY (app_id) REFERENCES app_state)`)
		exec(t, owner, `CREATE ROLE serving LOGIN IN ROLE `+store.AppRole)
		serving := strings.Replace(url, "postgres@", "serving@", 1)
		if err := storetest.Migrate(t.Context(), serving); err == nil || !strings.Contains(err.Error(), "newest are not distributed") {
			t.Errorf("a start that may only serve says %v", err)
		}
		noError(t, storetest.Migrate(t.Context(), url))
		if got := distributed(); !slices.Contains(got, "newest") {
			t.Errorf("distributed are %v", got)
		}
		noError(t, storetest.Migrate(t.Context(), serving))
	})

	t.Run("refuses tables that refer to each other", func(t *testing.T) {
		exec(t, owner, `CREATE TABLE circle (app_id uuid PRIMARY KEY)`)
		exec(t, owner, `ALTER TABLE circle ADD FOREIGN KEY (app_id) REFERENCES app_state`)
		exec(t, owner, `ALTER TABLE app_state ADD FOREIGN KEY (app_id) REFERENCES circle NOT VALID`)
		if err := store.Distribute(t.Context(), url); err == nil || !strings.Contains(err.Error(), "circle") {
			t.Errorf("it says %v", err)
		}
	})
}

// findsStrayApplications puts a row into a table that refers to no other.
func findsStrayApplications(t *testing.T, db *store.Store, owner *pgx.Conn) {
	t.Helper()
	strays := func() []verify.StrayApplication {
		list, checked, err := db.Installation().StrayApplications(t.Context())
		noError(t, err)
		if !checked {
			t.Error("nothing was checked")
		}
		return list
	}
	if found := strays(); len(found) > 0 {
		t.Errorf("it finds %v", found)
	}
	stray := ids.New()
	exec(t, owner, `INSERT INTO feeds (app_id, org_id) VALUES ($1, $1)`, stray)
	if found := strays(); !slices.Equal(found, []verify.StrayApplication{{AppID: stray, Table: "feeds"}}) {
		t.Errorf("it finds %v", found)
	}
	exec(t, owner, `DELETE FROM feeds WHERE app_id = $1`, stray)
}
