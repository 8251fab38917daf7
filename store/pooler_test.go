package store_test

import (
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"purser/store"
	"purser/store/storetest"
)

// poolerURL leads to a database through a program that drops a startup parameter, as PgBouncer
// does with those in its ignore_startup_parameters.
func poolerURL(t *testing.T, address, dropped string) string {
	t.Helper()
	u, err := url.Parse(address)
	noError(t, err)
	query := u.Query()
	server := filepath.Join(query.Get("host"), ".s.PGSQL."+query.Get("port"))
	folder := t.TempDir()
	listener, err := net.Listen("unix", filepath.Join(folder, ".s.PGSQL."+query.Get("port")))
	noError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go poolConnection(client, server, dropped)
		}
	}()
	query.Set("host", folder)
	u.RawQuery = query.Encode()
	return u.String()
}

func poolConnection(client net.Conn, server, dropped string) {
	defer client.Close()
	upstream, err := net.Dial("unix", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	first, err := pgproto3.NewBackend(client, client).ReceiveStartupMessage()
	if err != nil {
		return
	}
	if startup, ok := first.(*pgproto3.StartupMessage); ok {
		delete(startup.Parameters, dropped)
	}
	message, err := first.Encode(nil)
	if err != nil {
		return
	}
	if _, err := upstream.Write(message); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(client, upstream)
		_ = client.Close()
	}()
	_, _ = io.Copy(upstream, client)
}

// A login that no policy binds would reach every tenant's rows through such a pooler.
func TestAPoolerThatIgnoresStartupParametersIsRefused(t *testing.T) {
	t.Parallel()
	address := storetest.FreshURL(t)
	db, err := store.Open(t.Context(), poolerURL(t, address, "none"), store.Options{})
	noError(t, err)
	db.Close()
	for _, dropped := range []string{"role", "purser.reads_packed"} {
		if db, err := store.Open(t.Context(), poolerURL(t, address, dropped), store.Options{}); err == nil || !strings.Contains(err.Error(), "not to a pooler") {
			t.Errorf("without %s: %v", dropped, err)
			if err == nil {
				db.Close()
			}
		}
	}
}
