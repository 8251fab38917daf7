package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// AnchorTable is distributed first. The rows of an application lie on the node that has
// its row of this table.
const AnchorTable = "app_state"

// CitusParameters are parameters of every connection that serves. The first has SET LOCAL
// purser.app_id forwarded to shards; with the second, no statement runs on a local shard,
// where an INSERT or COPY could skip the policies. Plain Postgres keeps them as
// placeholders without a meaning.
var CitusParameters = map[string]string{
	"citus.propagate_set_commands": "local",
	"citus.enable_local_execution": "off",
}

// RowQuerier is a pool, a connection or a transaction.
type RowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// HasCitus reports whether the database has the catalog of Citus.
func HasCitus(ctx context.Context, on RowQuerier) (found bool, err error) {
	err = on.QueryRow(ctx, `SELECT to_regclass('pg_dist_partition') IS NOT NULL`).Scan(&found)
	return found, err
}

// IsDistributed reports whether the tables of applications are distributed.
func IsDistributed(ctx context.Context, on RowQuerier) (distributed bool, err error) {
	if citus, err := HasCitus(ctx, on); err != nil || !citus {
		return false, err
	}
	err = on.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('public.`+AnchorTable+`'))`).Scan(&distributed)
	return distributed, err
}
