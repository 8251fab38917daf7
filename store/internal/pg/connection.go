package pg

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// startConnectTimeout bounds one attempt to connect at start, unless the address says
// connect_timeout.
const startConnectTimeout = 10 * time.Second

// parseAddress reads DATABASE_URL for one connection.
func parseAddress(address string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, addressError(err)
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, startConnectTimeout)
	return config, nil
}

// addressError says why an address cannot be used, and never repeats it: it may
// hold a password.
func addressError(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("store: the file %s that DATABASE_URL names cannot be read (%w): correct the path or its permissions", file.Path, file.Err)
	}
	if inner := errors.Unwrap(err); inner != nil && inner.Error() == "sslmode is invalid" {
		return errors.New("store: sslmode in DATABASE_URL is none that Postgres knows: use verify-full, verify-ca, require or disable")
	}
	return errors.New("store: DATABASE_URL is not a valid postgres:// address: write it as postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full, with special characters of the password percent-encoded")
}

// connectAtStart connects, and says in one line what to do when it cannot.
func connectAtStart(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("store: %w", connectError(err, &config.Config))
	}
	return conn, nil
}

// startError is why the database cannot be used, in one line. It keeps the cause
// for errors.Is and leaves its text out: pgx writes a line for each attempt.
type startError struct {
	text  string
	cause error
}

func (e *startError) Error() string { return e.text }
func (e *startError) Unwrap() error { return e.cause }

// Codes with which Postgres refuses a connection.
const (
	invalidPassword      = "28P01"
	invalidAuthorization = "28000"
	noSuchDatabase       = "3D000"
	cannotConnectNow     = "57P03"
)

// connectError explains a failed connection.
func connectError(err error, config *pgconn.Config) error {
	explain := func(format string, args ...any) error {
		return &startError{text: fmt.Sprintf(format, args...), cause: err}
	}
	if errors.Is(err, context.Canceled) {
		return explain("connecting to the database was interrupted")
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch refused.Code {
		case invalidPassword:
			return explain("the database refuses the password of the login %s: correct user and password in DATABASE_URL", config.User)
		case invalidAuthorization:
			return explain("the database refuses the login %s (%s): correct the user in DATABASE_URL, or let it in with a line in pg_hba.conf", config.User, refused.Message)
		case noSuchDatabase:
			return explain("the database server has no database %q: create it with CREATE DATABASE, or correct the name at the end of DATABASE_URL", config.Database)
		case TooManyConnections:
			return explain("the database server has no free connection (%s): raise max_connections, or end other clients", refused.Message)
		case cannotConnectNow:
			return explain("the database server does not take connections now (%s): wait until it is up, and start again", refused.Message)
		}
		return explain("the database server refuses the connection: %s (SQLSTATE %s)", refused.Message, refused.Code)
	}
	place := hostPort(config.Host, config.Port)
	var (
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		record      tls.RecordHeaderError
		name        *net.DNSError
		op          *net.OpError
	)
	switch {
	case errors.As(err, &certificate), errors.As(err, &authority):
		return explain("the certificate of the database at %s cannot be verified (%v): set sslrootcert in DATABASE_URL to the file of its authority, and use the host name that the certificate is for", place, certificateCause(err))
	case strings.Contains(err.Error(), "server refused TLS connection"), errors.As(err, &record):
		return explain("the database at %s does not offer TLS, which sslmode in DATABASE_URL demands: turn ssl on in its postgresql.conf, or set sslmode=disable if the network is yours alone", place)
	case errors.As(err, &name):
		return explain("the database cannot be reached: the host %s cannot be found: correct it in DATABASE_URL, or your DNS", name.Name)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return explain("the database at %s cannot be reached (nothing listens there): start Postgres, or correct host and port in DATABASE_URL", place)
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return explain("the database at %s cannot be reached (no answer in time): correct host and port in DATABASE_URL, or let this machine through the firewall", place)
	case errors.As(err, &op):
		return explain("the database at %s cannot be reached (%v): check host, port and network", place, op.Err)
	}
	return explain("the database at %s cannot be reached (%s): check DATABASE_URL", place, lastLine(err))
}

func certificateCause(err error) error {
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return certificate.Err
	}
	return errors.New("x509: certificate signed by unknown authority")
}

// lastLine is the innermost text of an error: pgx puts addresses and users before it.
func lastLine(err error) string {
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	last := lines[len(lines)-1]
	if at := strings.LastIndex(last, ": "); at >= 0 {
		last = last[at+2:]
	}
	return strings.TrimSpace(last)
}

func hostPort(host string, port uint16) string {
	if strings.HasPrefix(host, "/") {
		return host
	}
	return net.JoinHostPort(host, fmt.Sprint(port))
}

// checkEncryption refuses an address on another machine whose sslmode leaves it to
// the server, or to anyone in between, whether passwords and rows travel in
// clear text: prefer (which Postgres takes when sslmode is missing) and allow. An
// explicit sslmode=disable is obeyed and logged.
func checkEncryption(config *pgconn.Config, log *slog.Logger) error {
	encrypted, plain := map[string]bool{}, map[string]bool{}
	note := func(host string, port uint16, tls *tls.Config) {
		if isLocal(host) {
			return
		}
		if tls == nil {
			plain[hostPort(host, port)] = true
		} else {
			encrypted[hostPort(host, port)] = true
		}
	}
	note(config.Host, config.Port, config.TLSConfig)
	for _, f := range config.Fallbacks {
		note(f.Host, f.Port, f.TLSConfig)
	}
	for host := range plain {
		if encrypted[host] {
			return fmt.Errorf("store: DATABASE_URL leads to another machine (%s) and does not demand encryption: add sslmode=verify-full, or sslmode=require to encrypt without checking the certificate, or sslmode=disable if the network is yours alone", host)
		}
		log.Warn("database connection is not encrypted", "host", host, "sslmode", "disable")
	}
	return nil
}

// isLocal reports a socket or an address of this machine.
func isLocal(host string) bool {
	if strings.HasPrefix(host, "/") || strings.HasPrefix(host, "@") || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback()
}
