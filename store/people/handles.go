package people

import (
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"purser/ids"
	"purser/store/internal/pg"
)

// Handles opens the handles on one database.
type Handles struct {
	pool     *pgxpool.Pool
	bun      *bun.DB
	keyAddrs *lru.Cache[[32]byte, KeyAddress]
}

func Open(db *pg.DB) (*Handles, error) {
	addrs, err := lru.New[[32]byte, KeyAddress](rememberedKeys)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &Handles{pool: db.Pool, bun: bun.NewDB(stdlib.OpenDBFromPool(db.Pool), pgdialect.New()), keyAddrs: addrs}, nil
}

// Close ends the query builder's view of the pool. The pool stays open.
func (h *Handles) Close() {
	_ = h.bun.Close() // nothing of its own to lose
}

// Auth returns the unauthenticated lookups.
func (h *Handles) Auth() Auth { return Auth{handles: h} }

func (h *Handles) User(id ids.ID) User { return User{handles: h, id: id} }

func (h *Handles) Org(id ids.ID) Org { return Org{handles: h, id: id} }

// Directory returns the lookups before a scope is known.
func (h *Handles) Directory() Directory { return Directory{handles: h} }

// Outbox returns the mails that wait.
func (h *Handles) Outbox() Outbox { return Outbox{handles: h} }
