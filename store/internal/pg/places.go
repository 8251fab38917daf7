package pg

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/jackc/pgx/v5"

	"purser/ids"
)

const (
	// maxPlaces bounds the lanes of a node, and with them its connections.
	maxPlaces = 16
	// maxPlacedApps is for how many applications the place is remembered.
	maxPlacedApps = 10_000
	// placedFor is how long a place is trusted, and missedFor how long a look-up that
	// failed is not repeated. A shard that has moved meanwhile costs speed, nothing else.
	placedFor = 10 * time.Second
	missedFor = time.Second
	// placeTimeout is how long a look-up may take. It reads the coordinator only.
	placeTimeout = time.Second
)

// Places are the workers of a distributed database. Plain Postgres is one place.
type Places struct {
	db      *DB
	log     *slog.Logger
	workers []int32 // by the ids of their groups

	mu   sync.Mutex
	apps *simplelru.LRU[ids.ID, place]
}

// place is where an application was seen.
type place struct {
	index int
	until time.Time
}

// Places reads the workers. Look-ups that fail are logged.
func (db *DB) Places(ctx context.Context, log *slog.Logger) (*Places, error) {
	p := &Places{db: db, log: log, workers: []int32{0}}
	if !db.Distributed {
		return p, nil
	}
	workers, err := CollectSQL(ctx, db.Pool, "reading the workers", pgx.RowTo[int32],
		`SELECT groupid FROM pg_dist_node WHERE noderole = 'primary' AND shouldhaveshards ORDER BY groupid LIMIT $1`, maxPlaces)
	if err != nil {
		return nil, err
	}
	if len(workers) > 0 {
		p.workers = workers
	}
	p.apps, err = simplelru.NewLRU[ids.ID, place](maxPlacedApps, nil)
	return p, err
}

// Count is how many places there are.
func (p *Places) Count() int { return len(p.workers) }

// Of is the place of an application, below Count. A caller that finds it unknown looks it
// up. One of those that find it old does, too; the others use the old one meanwhile.
func (p *Places) Of(app ids.ID) int {
	if len(p.workers) == 1 {
		return 0
	}
	p.mu.Lock()
	last, known := p.apps.Get(app)
	if known && time.Now().Before(last.until) {
		p.mu.Unlock()
		return last.index
	}
	if known {
		p.apps.Add(app, place{last.index, time.Now().Add(placedFor)})
	}
	p.mu.Unlock()
	index, err := p.lookUp(app)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.log.Warn("worker of an application not found", "app", app.Format(ids.Application), "cause", err)
		if !known {
			p.apps.Add(app, place{0, time.Now().Add(missedFor)})
		}
		return last.index
	}
	p.apps.Add(app, place{index, time.Now().Add(placedFor)})
	return index
}

func (p *Places) lookUp(app ids.ID) (index int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), placeTimeout)
	defer cancel()
	var group int32
	err = p.db.Pool.QueryRow(ctx, `
		SELECT groupid FROM pg_dist_placement
		WHERE shardid = get_shard_id_for_distribution_column($1::text::regclass, $2::uuid) LIMIT 1`, AnchorTable, [16]byte(app)).Scan(&group)
	if err != nil {
		return 0, err
	}
	if index = slices.Index(p.workers, group); index < 0 { // it was added since
		index = int(group) % len(p.workers)
	}
	return index, nil
}
