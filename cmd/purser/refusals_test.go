package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"purser/store/storetest"
)

const (
	hiddenPassword = "hunter2-of-the-database"
	hiddenKey      = "a secret key that no error may show"
)

// Whatever keeps the program from starting, it says so in one line, with what to
// do, without a secret.
func TestRefusalsAreOneLineAndSayWhatToDo(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	database := func(address string) []string {
		return []string{"DATABASE_URL=" + address, "PURSER_SECRET_KEY=" + hiddenKey}
	}
	remote := func(host, query string) string {
		return "postgres://ann:" + hiddenPassword + "@" + host + "/books?" + query
	}
	readOnly := storetest.EmptyURL(t)
	storetest.Exec(t, readOnly, `ALTER DATABASE `+databaseOf(readOnly)+` SET default_transaction_read_only = on`)

	for name, c := range map[string]struct {
		args     []string
		settings []string
		says     []string
	}{
		"an unknown setting":              {settings: []string{"PURSER_ADRR=1"}, says: []string{"PURSER_ADRR", "purser help"}},
		"two malformed settings":          {settings: []string{"PURSER_RATE_LIMIT=x", "PURSER_LOG_LEVEL=x"}, says: []string{"PURSER_RATE_LIMIT must", "; PURSER_LOG_LEVEL must"}},
		"a log level that is none":        {settings: []string{"PURSER_LOG_LEVEL=loud"}, says: []string{"PURSER_LOG_LEVEL must be debug, info, warn or error"}},
		"requests logged in no known way": {settings: []string{"PURSER_LOG_REQUESTS=some"}, says: []string{"PURSER_LOG_REQUESTS must be all, errors, none or"}},
		"a short secret key":              {settings: []string{"PURSER_SECRET_KEY=short"}, says: []string{"PURSER_SECRET_KEY must have at least 32"}},
		"an unknown flag":                 {args: []string{"--adr", "x"}, says: []string{"adr", "purser help"}},
		"no secret key":                   {settings: []string{"DATABASE_URL=" + remote("127.0.0.1:1", "")}, says: []string{"PURSER_SECRET_KEY is required", "set it to"}},
		"an address without a port":       {args: []string{"--addr", "localhost"}, says: []string{"PURSER_ADDR", "HOST:PORT"}},
		"a port that is taken":            {args: []string{"--addr", taken.Addr().String()}, says: []string{"PURSER_ADDR", "is already in use", "choose another port"}},
		"a port that is none":             {args: []string{"--addr", "127.0.0.1:99999"}, says: []string{"PURSER_ADDR", "a port from 1 to 65535"}},
		"an address of another machine":   {args: []string{"--addr", "192.0.2.1:80"}, says: []string{"PURSER_ADDR", "is not an address of this machine"}},
		"a metrics port that is taken": {settings: append(database(storetest.FreshURL(t)), "PURSER_METRICS_ADDR="+taken.Addr().String()),
			says: []string{"PURSER_METRICS_ADDR", "choose another port"}},
		"a data folder that is a file":            {settings: []string{"PURSER_DATA=" + file}, says: []string{file, "not a folder", "PURSER_DATA"}},
		"a data folder below a file":              {settings: []string{"PURSER_DATA=" + file + "/data"}, says: []string{file, "not a folder", "PURSER_DATA"}},
		"a data folder that cannot be written":    {settings: []string{"PURSER_DATA=/proc/purser"}, says: []string{"/proc/purser", "PURSER_DATA"}},
		"the same with a secret key":              {settings: []string{"PURSER_DATA=/proc/purser", "PURSER_SECRET_KEY=" + hiddenKey}, says: []string{"/proc/purser", "PURSER_DATA"}},
		"an address of a database that is none":   {settings: database("postgres://ann:" + hiddenPassword + "@[bad"), says: []string{"DATABASE_URL is not a valid", "percent-encoded"}},
		"an sslmode that is none":                 {settings: database(remote("127.0.0.1:1", "sslmode=perhaps")), says: []string{"sslmode", "use verify-full"}},
		"an authority's file that is missing":     {settings: database(remote("127.0.0.1:1", "sslmode=verify-full&sslrootcert=/missing.pem")), says: []string{"/missing.pem", "correct the path"}},
		"a remote database, encrypted perhaps":    {settings: database(remote("db.example.com", "")), says: []string{"db.example.com:5432", "sslmode=verify-full"}},
		"the same, said with sslmode=allow":       {settings: database(remote("10.1.2.3", "sslmode=allow")), says: []string{"10.1.2.3:5432", "sslmode=verify-full"}},
		"a host that does not exist":              {settings: database(remote("purser.invalid", "sslmode=require")), says: []string{"cannot be reached", "correct"}},
		"a port where nothing listens":            {settings: database(remote("127.0.0.1:1", "")), says: []string{"127.0.0.1:1 cannot be reached", "start Postgres"}},
		"a socket that is not there":              {settings: database("postgres:///books?host=/nowhere"), says: []string{"/nowhere", "start Postgres"}},
		"a server without TLS":                    {settings: database(remote(refusingServer(t, ""), "sslmode=require")), says: []string{"does not offer TLS", "sslmode=disable"}},
		"a wrong password":                        {settings: database(remote(refusingServer(t, "28P01"), "")), says: []string{"password of the login ann", "correct user and password"}},
		"a login that pg_hba.conf does not admit": {settings: database(remote(refusingServer(t, "28000"), "")), says: []string{"login ann", "pg_hba.conf"}},
		"a server without free connections":       {settings: database(remote(refusingServer(t, "53300"), "")), says: []string{"no free connection", "max_connections"}},
		"a server that is starting":               {settings: database(remote(refusingServer(t, "57P03"), "")), says: []string{"does not take connections now", "start again"}},
		"a database that does not exist":          {settings: database(inDatabase(storetest.URL(t), "no_such_database")), says: []string{`no database "no_such_database"`, "CREATE DATABASE"}},
		"a database that is read-only":            {settings: database(readOnly), says: []string{"read-only", "turn it off"}},
		"a login that may not create tables":      {settings: database(loginWith(t, storetest.EmptyURL(t), "")), says: []string{"may not create the schema", "GRANT CREATE ON"}},
		"a first login that may not create roles": {settings: database(ownerOf(t, storetest.EmptyURL(t))), says: []string{"CREATEROLE; as a superuser", "NOCREATEROLE"}},
		"a login that is not a member":            {settings: database(loginWith(t, storetest.FreshURL(t), "")), says: []string{"neither owns", "GRANT purser_app TO"}},
		"a member without the latest schema":      {settings: database(memberOf(t, oldSchema(t))), says: []string{"lacks 1 migrations", "purser migrate"}},
		"a member without its rights":             {settings: database(memberOf(t, changed(t, `REVOKE SELECT ON wallets FROM purser_app`))), says: []string{"should have SELECT on wallets", "purser migrate"}},
		"a member without policies":               {settings: database(memberOf(t, changed(t, `DROP POLICY tenant ON journal`))), says: []string{"the tenant policy on journal", "purser migrate"}},
		"a member without any rights":             {settings: database(memberOf(t, changed(t, `REVOKE ALL ON ALL TABLES IN SCHEMA public FROM purser_app`))), says: []string{"as after a restore", "purser migrate"}},
		"an owner of some of the tables":          {settings: database(partOwnerOf(t, changed(t, `REVOKE SELECT ON wallets FROM purser_app`))), says: []string{"should have SELECT on wallets", "REASSIGN OWNED"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"serve"}, c.args...)
			if len(c.args) == 0 {
				args = append(args, "--addr", "127.0.0.1:0")
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			settings := append([]string{"PURSER_DATA=" + filepath.Join(t.TempDir(), "data")}, c.settings...)
			err := run(ctx, args, settings, stopWhenStarted{cancel}, io.Discard)
			if err == nil {
				t.Fatal("it starts")
			}
			text := err.Error()
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q: %s", want, text)
				}
			}
			if strings.Contains(text, "\n") || len(text) > 400 {
				t.Errorf("it is not one line: %s", text)
			}
			if strings.Contains(text, hiddenPassword) || strings.Contains(text, hiddenKey) {
				t.Errorf("it holds a secret: %s", text)
			}
		})
	}
}

// stopWhenStarted ends a server that was not refused.
type stopWhenStarted struct{ stop func() }

func (s stopWhenStarted) Write(text []byte) (int, error) {
	s.stop()
	return len(text), nil
}

// refusingServer speaks as much of Postgres's protocol as a refusal needs: it has no
// TLS, and answers a login with an error of the code.
func refusingServer(t *testing.T, code string) (host string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go refuseLogin(conn, code)
		}
	}()
	return listener.Addr().String()
}

func refuseLogin(conn net.Conn, code string) {
	defer conn.Close()
	const sslRequest = 80877103
	for {
		var header [8]byte
		if _, err := io.ReadFull(conn, header[:]); err != nil {
			return
		}
		length := binary.BigEndian.Uint32(header[:4])
		if _, err := io.CopyN(io.Discard, conn, int64(length)-int64(len(header))); err != nil {
			return
		}
		if binary.BigEndian.Uint32(header[4:]) == sslRequest {
			_, _ = conn.Write([]byte("N"))
			continue
		}
		fields := "SFATAL\x00VFATAL\x00C" + code + "\x00Mrefused for a reason\x00\x00"
		message := binary.BigEndian.AppendUint32([]byte("E"), uint32(4+len(fields)))
		_, _ = conn.Write(append(message, fields...))
		return
	}
}

// newLogin makes a role that may log in, with options of CREATE ROLE. It returns its name and
// the address with which it reaches the same database. The role goes with the test.
func newLogin(t *testing.T, address, options string) (role, as string) {
	t.Helper()
	role = "login_" + strings.ToLower(rand.Text())
	storetest.Exec(t, address, `CREATE ROLE `+role+` LOGIN `+options)
	t.Cleanup(func() { storetest.Exec(t, storetest.URL(t), `DROP ROLE `+role) })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(role)
	return role, u.String()
}

// loginWith is an address for a role that has nothing but the options.
func loginWith(t *testing.T, address, options string) string {
	t.Helper()
	_, as := newLogin(t, address, options)
	u, err := url.Parse(as)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(u.User.Username(), hiddenPassword)
	return u.String()
}

// ownerOf is the address for a login that owns an empty database and may create no role.
func ownerOf(t *testing.T, address string) string {
	t.Helper()
	role, as := newLogin(t, address, "IN ROLE purser_app")
	storetest.Exec(t, address, `ALTER DATABASE `+databaseOf(address)+` OWNER TO `+role)
	t.Cleanup(func() { storetest.Exec(t, address, `REASSIGN OWNED BY `+role+` TO postgres`) })
	return as
}

// memberOf is the address for a login that may serve and owns nothing.
func memberOf(t *testing.T, address string) string {
	t.Helper()
	return loginWith(t, address, "IN ROLE purser_app")
}

// partOwnerOf is the address for a login that owns the tables of the migrations, and no
// other.
func partOwnerOf(t *testing.T, address string) string {
	t.Helper()
	role, as := newLogin(t, address, "IN ROLE purser_app")
	for _, sql := range []string{
		`ALTER TABLE schema_migrations OWNER TO ` + role,
		`ALTER TABLE schema_migrations_locks OWNER TO ` + role,
		`GRANT ALL ON SCHEMA river, public TO ` + role,
	} {
		storetest.Exec(t, address, sql)
	}
	t.Cleanup(func() {
		storetest.Exec(t, address, `REASSIGN OWNED BY `+role+` TO postgres`)
		storetest.Exec(t, address, `DROP OWNED BY `+role+` CASCADE`)
	})
	return as
}

// changed is a migrated database after a statement of its owner.
func changed(t *testing.T, sql string) string {
	t.Helper()
	address := storetest.FreshURL(t)
	storetest.Exec(t, address, sql)
	return address
}

// oldSchema is a database whose last migration is not recorded.
func oldSchema(t *testing.T) string {
	return changed(t, `DELETE FROM schema_migrations WHERE name = (SELECT max(name) FROM schema_migrations)`)
}

func databaseOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

func inDatabase(address, name string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	u.Path = "/" + name
	return u.String()
}
