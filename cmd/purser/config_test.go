package main

import (
	"log/slog"
	netmail "net/mail"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"purser/mail"
)

func TestReadConfig(t *testing.T) {
	t.Run("has defaults for everything", func(t *testing.T) {
		c, err := readConfig([]string{"HOME=/home/ann", "PATH=/bin"})
		if err != nil {
			t.Fatal(err)
		}
		want := config{
			addr: "127.0.0.1:8080", data: "./data", databaseConns: 25, rateLimit: 1000, drain: 5 * time.Second,
			memoryLimit: 512 << 20, maxConnections: 10_000, logSuccesses: 10, logRefusals: 10,
			keepFailures: 30 * 24 * time.Hour, keepDenials: 30 * 24 * time.Hour, verifyNew: time.Hour, verifyAll: 24 * time.Hour, verifyLimit: time.Hour,
		}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("got %+v, want %+v", c, want)
		}
	})
	t.Run("takes every setting", func(t *testing.T) {
		key := strings.Repeat("k", 32)
		c, err := readConfig([]string{
			"PURSER_ADDR=:9", "PURSER_DATA=/d", "DATABASE_URL=postgres://x", "PURSER_BASE_URL=https://p.example/",
			"PURSER_RATE_LIMIT=0", "PURSER_SECRET_KEY=" + key, "PURSER_SECRET_KEY_PREVIOUS=" + key + "0",
			"PURSER_METRICS_ADDR=127.0.0.1:9090", "PURSER_SANDBOX=off", "PURSER_SANDBOX_ADDR=:8081", "PURSER_DRAIN=1m", "PURSER_MEMORY_LIMIT=2GiB", "PURSER_MAX_CONNECTIONS=7", "PURSER_TRUSTED_PROXY=10.1.2.3/8, fd00::/8,192.0.2.1",
			"PURSER_LOG_LEVEL=debug", "PURSER_LOG_REQUESTS=errors", "PURSER_DB_CONNS=11",
			"PURSER_NEW_ORGANIZATIONS=on", "PURSER_SECOND_FACTOR=required", "PURSER_KEEP_FAILURES=48h", "PURSER_KEEP_DENIALS=72h", "PURSER_NOTIFICATION_DAYS=7", "PURSER_WEBHOOK_NETWORKS=10.1.2.3/16",
			"PURSER_VERIFY_NEW=0", "PURSER_VERIFY_ALL=12h", "PURSER_VERIFY_LIMIT=90s",
			"PURSER_SMTP_URL=smtps://mail.example.com", "PURSER_MAIL_FROM=Purser <billing@example.com>",
		})
		if err != nil {
			t.Fatal(err)
		}
		want := config{
			addr: ":9", data: "/d", databaseURL: "postgres://x", baseURL: "https://p.example", secretKey: key, previousKey: key + "0", metricsAddr: "127.0.0.1:9090", sandboxOff: true, sandboxAddr: ":8081", drain: time.Minute,
			databaseConns: 11, memoryLimit: 2 << 30, maxConnections: 7, logLevel: slog.LevelDebug, logRefusals: 10,
			trustedProxies:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("192.0.2.1/32")},
			newOrganizations: true, requireFactor: true, keepFailures: 48 * time.Hour, keepDenials: 72 * time.Hour,
			notificationDays: 7, webhookNetworks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")},
			verifyAll: 12 * time.Hour, verifyLimit: 90 * time.Second,
			smtp: &mail.Server{Host: "mail.example.com", Port: 465, ImplicitTLS: true}, mailFrom: netmail.Address{Name: "Purser", Address: "billing@example.com"},
		}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("got %+v, want %+v", c, want)
		}
	})
	t.Run("leaves what callers of the API set alone", func(t *testing.T) {
		if _, err := readConfig([]string{"PURSER_KEY=psr_test_x", "PURSER_URL=http://127.0.0.1:8080"}); err != nil {
			t.Error(err)
		}
	})
	t.Run("an empty value is no value", func(t *testing.T) {
		if c, err := readConfig([]string{"PURSER_ADDR=", "PURSER_RATE_LIMIT="}); err != nil || c.addr != "127.0.0.1:8080" || c.rateLimit != 1000 {
			t.Errorf("got %+v, %v", c, err)
		}
	})
}

func TestReadConfigNamesWhatIsWrong(t *testing.T) {
	for _, pair := range []string{
		"PURSER_ADRR=127.0.0.1:1",
		"PURSER_BASE_URL=no-scheme.invalid",
		"PURSER_BASE_URL=ftp://files.invalid",
		"PURSER_BASE_URL=https://ann:secret@billing.example.com",
		"PURSER_DRAIN=soon",
		"PURSER_DRAIN=-1s",
		"PURSER_DRAIN=11m",
		"PURSER_MEMORY_LIMIT=127MiB",
		"PURSER_MEMORY_LIMIT=1000000000",
		"PURSER_MEMORY_LIMIT=lots",
		"PURSER_MAX_CONNECTIONS=00", // the bounds in the error contain a single zero
		"PURSER_MAX_CONNECTIONS=1048576",
		"PURSER_MAX_CONNECTIONS=few",
		"PURSER_NOTIFICATION_DAYS=00",
		"PURSER_NOTIFICATION_DAYS=3651",
		"PURSER_RATE_LIMIT=-1",
		"PURSER_RATE_LIMIT=2147483648",
		"PURSER_DB_CONNS=9",
		"PURSER_DB_CONNS=1001",
		"PURSER_DB_CONNS=a few",
		"PURSER_VERIFY_NEW=-1h",
		"PURSER_VERIFY_ALL=nightly",
		"PURSER_VERIFY_LIMIT=0s",
		"PURSER_RATE_LIMIT=1.5",
		"PURSER_RATE_LIMIT=many",
		"PURSER_SECRET_KEY=short",
		"PURSER_SECRET_KEY_PREVIOUS=short",
		"PURSER_METRICS_ADDR=7777",
		"PURSER_LOG_LEVEL=loud",
		"PURSER_LOG_REQUESTS=-7",
		"PURSER_LOG_REQUESTS=1000001",
		"PURSER_LOG_REQUESTS=some",
		"PURSER_TRUSTED_PROXY=anywhere",
		"PURSER_TRUSTED_PROXY=0.0.0.0/0",
		"PURSER_TRUSTED_PROXY=::/0",
		"PURSER_TRUSTED_PROXY=10.0.0.0/8,,",
	} {
		name, value, _ := strings.Cut(pair, "=")
		_, err := readConfig([]string{pair})
		if err == nil {
			t.Errorf("%s was accepted", pair)
			continue
		}
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s is refused without its name: %v", pair, err)
		}
		if strings.Contains(err.Error(), value) {
			t.Errorf("%s is refused with its value, which may be a secret: %v", pair, err)
		}
	}
	t.Run("all at once", func(t *testing.T) {
		_, err := readConfig([]string{"PURSER_ONE=1", "PURSER_RATE_LIMIT=x"})
		if err == nil || !strings.Contains(err.Error(), "PURSER_ONE") || !strings.Contains(err.Error(), "PURSER_RATE_LIMIT") {
			t.Errorf("got %v", err)
		}
	})
}

func TestAPublicAddressWithTLSNeedsADeclaredProxy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ []string
		hinted  bool
	}{
		"no public address":               {nil, false},
		"a public address without TLS":    {[]string{"PURSER_BASE_URL=http://billing.example.com"}, false},
		"TLS in front, and no proxy":      {[]string{"PURSER_BASE_URL=https://billing.example.com"}, true},
		"TLS in front, the proxy is ours": {[]string{"PURSER_BASE_URL=https://billing.example.com", "PURSER_TRUSTED_PROXY=10.0.0.0/8"}, false},
	} {
		read, err := readConfig(c.environ)
		if err != nil {
			t.Fatal(err)
		}
		if hint := read.proxyHint(); (hint != "") != c.hinted {
			t.Errorf("%s: %q", name, hint)
		}
	}
}
