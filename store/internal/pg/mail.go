package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"purser/ids"
)

// Mail is a message in the outbox. Its address and its text are sealed, so the store
// knows only what kind it is and until when it is of use.
type Mail struct {
	ID        ids.ID
	Kind      string
	Sealed    []byte
	CreatedAt int64
	ExpiresAt int64
}

// QueueMail writes mails into the outbox, in the transaction that they report on: a mail
// is sent if and only if it commits.
func QueueMail(ctx context.Context, conn *pgx.Conn, mails ...Mail) error {
	for _, m := range mails {
		_, err := conn.Exec(ctx, `
			INSERT INTO mails (id, kind, sealed, created_at, expires_at, due_at, tries) VALUES ($1, $2, $3, $4, $5, $4, 0)`,
			m.ID, m.Kind, m.Sealed, m.CreatedAt, m.ExpiresAt)
		if err != nil {
			return fmt.Errorf("store: queue mail: %w", err)
		}
	}
	return nil
}
