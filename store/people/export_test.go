package people

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// RosterQuery is for a test of its plan.
const RosterQuery = rosterQuery

// MaxAuditTurns is how often a transaction on the tables of users is tried.
const MaxAuditTurns = maxAuditTurns

// InTx runs work in a transaction on the tables of users.
func (p User) InTx(ctx context.Context, work func() error) error {
	return p.handles.inUserTx(ctx, func(context.Context, pgx.Tx) error { return work() })
}
