//go:build citus

package storetest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"purser/store"
)

// With the build tag citus, tests get distributed databases of the cluster whose
// coordinator CITUS_DSN names, as a superuser in a database that has its workers.
func init() { joinCluster = joinCitus }

// shards is few, since each test with a database of its own has them copied, and enough
// for a statement without its application to be seen as several tasks.
const shards = 2

func joinCitus(ctx context.Context) (*cluster, error) {
	coordinator, err := url.Parse(os.Getenv("CITUS_DSN"))
	if err != nil || coordinator.Host == "" {
		return nil, errors.New("storetest: CITUS_DSN is not the address of a coordinator: see store/citus_test.go")
	}
	c := &cluster{dir: filepath.Join(clusterParent(), fmt.Sprintf("purser-citus-%d", os.Geteuid()))}
	if c.presence, err = bePresent(ctx, c.dir); err != nil {
		return nil, fmt.Errorf("storetest: %w", err)
	}
	workers, err := workersOf(ctx, coordinator.String())
	if err != nil {
		return nil, fmt.Errorf("storetest: the workers of CITUS_DSN: %w", err)
	}
	for _, host := range append([]string{coordinator.Host}, workers...) {
		c.nodes = append(c.nodes, func(database string) string {
			at := *coordinator
			at.Host, at.Path = host, "/"+database
			return at.String()
		})
	}
	c.enlist = func(ctx context.Context, name string) error { return c.addNodes(ctx, name, coordinator.Host, workers) }
	c.distribute = c.distributeTables
	return c, c.dropAbandoned(ctx)
}

func workersOf(ctx context.Context, address string) (workers []string, err error) {
	err = onSession(ctx, address, func(conn *pgx.Conn) error {
		rows, _ := conn.Query(ctx, `SELECT nodename, nodeport::text FROM pg_dist_node WHERE groupid > 0 AND isactive ORDER BY nodeid`) // CollectRows returns its error
		workers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			var host, port string
			err := row.Scan(&host, &port)
			return net.JoinHostPort(host, port), err
		})
		return err
	})
	if err == nil && len(workers) == 0 {
		err = errors.New("there are none: call citus_add_node")
	}
	return workers, err
}

// addNodes makes a database on every node one of the cluster.
func (c *cluster) addNodes(ctx context.Context, name, coordinator string, workers []string) error {
	for _, n := range c.nodes {
		err := onSession(ctx, n(name), func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "CREATE EXTENSION citus")
			return err
		})
		if err != nil {
			return err
		}
	}
	return onSession(ctx, c.url(name), func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `SELECT citus_set_coordinator_host($1, $2)`, hostOf(coordinator), portOf(coordinator)); err != nil {
			return err
		}
		for _, worker := range workers {
			if _, err := conn.Exec(ctx, `SELECT citus_add_node($1, $2)`, hostOf(worker), portOf(worker)); err != nil {
				return err
			}
		}
		_, err := conn.Exec(ctx, fmt.Sprintf(`ALTER DATABASE %s SET citus.shard_count = %d`, name, shards))
		return err
	})
}

func hostOf(address string) string { return address[:strings.LastIndex(address, ":")] }
func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// distributeTables also ends the background process of Citus in the database, which can
// only be copied without any session.
func (c *cluster) distributeTables(ctx context.Context, name string) error {
	if err := store.Distribute(ctx, c.url(name)); err != nil {
		return err
	}
	return c.everywhere(ctx, `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '`+name+`'`)
}
