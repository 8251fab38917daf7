package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"purser/store/embedded/flock"
)

// startLimit bounds one attempt to start the cluster, from the last progress of a recovery:
// after a crash it may replay gigabytes of write-ahead log.
const startLimit = 5 * time.Minute

// stopLimit bounds the wait for a clean shutdown, which writes all dirty pages. After it,
// Postgres continues the shutdown by itself.
const stopLimit = 2 * time.Minute

// superuser is the role that owns the cluster. The mode of the socket's folder protects it.
const superuser = "postgres"

// Options say where the cluster is.
type Options struct {
	Dir    string       // Purser's data folder, made when missing
	BinDir string       // the folder of initdb and postgres; empty to search the machine
	Log    *slog.Logger // nil for silence
}

// Server is this process's use of the cluster.
type Server struct {
	cluster *cluster
	user    *flock.Lock // shared: we are among the users

	stop           sync.Once
	stopped        error
	endSupervision context.CancelFunc
	supervised     sync.WaitGroup
}

// Start joins the cluster of the data folder. It creates the cluster if there is none, and
// starts it if it is not running. Until Stop, a cluster that dies is started again.
func Start(ctx context.Context, o Options) (*Server, error) {
	c, err := locate(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("embedded postgres: %w", err)
	}
	ctx, end := c.whileItProgresses(ctx)
	defer end()
	user, conn, err := c.join(ctx)
	if err != nil {
		return nil, fmt.Errorf("embedded postgres: %w", err)
	}
	s := &Server{cluster: c, user: user}
	supervision, endSupervision := context.WithCancel(context.Background())
	s.endSupervision = endSupervision
	s.supervised.Go(func() { s.supervise(supervision, conn) })
	return s, nil
}

// URL is the address of a database of the cluster, for its superuser.
func (s *Server) URL(database string) string { return s.cluster.url(database) }

// Home is the folder with all files of the cluster.
func (s *Server) Home() string { return s.cluster.home }

// Stop ends this process's use, and the cluster too when no other process uses
// it. When the context ends first the cluster may stay, or go on shutting down;
// the next Start handles both. Every later call returns the result of the
// first.
func (s *Server) Stop(ctx context.Context) error {
	s.stop.Do(func() {
		s.endSupervision()
		s.supervised.Wait()
		if err := s.cluster.leave(ctx, s.user); err != nil {
			s.stopped = fmt.Errorf("embedded postgres: %w", err)
		}
	})
	return s.stopped
}

// join counts this process among the users and returns a connection.
func (c *cluster) join(ctx context.Context) (*flock.Lock, *pgx.Conn, error) {
	starting, err := flock.Acquire(ctx, c.path(startLock), flock.Exclusive)
	if err != nil {
		return nil, nil, c.explain(err)
	}
	defer starting.Release()
	user, err := flock.Acquire(ctx, c.path(usersLock), flock.Shared)
	if err != nil {
		return nil, nil, err
	}
	conn, err := c.ensure(ctx)
	if err != nil {
		user.Release()
		return nil, nil, err
	}
	return user, conn, nil
}

// leave releases the cluster and stops it after its last user. A process that joins
// waits at start.lock, so it finds the cluster either running or stopped.
func (c *cluster) leave(ctx context.Context, user *flock.Lock) error {
	defer user.Release()
	starting, err := flock.Acquire(ctx, c.path(startLock), flock.Exclusive)
	if err != nil {
		return err
	}
	defer starting.Release()
	if err := user.Upgrade(); err != nil {
		if errors.Is(err, flock.ErrHeld) {
			return nil
		}
		return err
	}
	return c.stop(ctx)
}

// url needs no password: only the account can enter the socket's folder.
func (c *cluster) url(database string) string {
	query := url.Values{"host": {c.socket()}, "port": {port}, "sslmode": {"disable"}}
	address := url.URL{Scheme: "postgres", User: url.User(superuser), Path: "/" + database}
	address.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // Postgres clients take a plus for a plus
	return address.String()
}
