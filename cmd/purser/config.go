package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"purser/mail"
	"purser/store"
	"purser/store/reports"
	"purser/store/verify"
)

// config holds every setting. Flags override the environment.
type config struct {
	addr        string
	data        string
	databaseURL string
	baseURL     string
	// listensOnAll is set if the base URL was made from a wildcard listen address.
	listensOnAll bool
	metricsAddr  string
	// sandboxAddr serves the sandbox's Stripe API at its root; empty for none.
	sandboxAddr string
	sandboxOff  bool
	// databaseConns is the connection pool size of this node.
	databaseConns int
	rateLimit     float64
	// drain is how long SIGTERM leaves the listener open while /readyz answers 503.
	drain time.Duration
	// memoryLimit bounds the process, in bytes; 0 for no limit.
	memoryLimit    int64
	maxConnections int
	secretKey      string
	// previousKey opens secrets sealed before the key was changed.
	previousKey string
	// trustedProxies are networks whose X-Forwarded-For is trusted.
	trustedProxies []netip.Prefix
	// notificationDays is the retention of notifications; the default when zero.
	notificationDays int
	// webhookNetworks are private networks that webhooks may reach.
	webhookNetworks []netip.Prefix
	logLevel        slog.Level
	// Log lines per second for successful and for refused requests.
	logSuccesses, logRefusals int64
	// newOrganizations lets everyone with an account create organizations.
	newOrganizations bool
	// requireFactor requires an authenticator of every member.
	requireFactor bool
	// smtp sends mail, from mailFrom; nil for no mail.
	smtp     *mail.Server
	mailFrom netmail.Address
	// keepFailures is the retention of failed requests.
	keepFailures time.Duration
	keepDenials  time.Duration
	// verifyNew and verifyAll are the intervals of verifications; zero for none.
	verifyNew, verifyAll, verifyLimit time.Duration
}

const (
	defaultRateLimit = 1000
	defaultDrain     = 5 * time.Second
	maxDrain         = 10 * time.Minute
	// Some connections are reserved for other requests and background jobs.
	defaultDatabaseConns = store.DefaultConns + store.UsageConns
	minDatabaseConns     = store.UsageConns + 2
	maxDatabaseConns     = 1000
	maxNotificationDays  = 3650
	minSecretKey         = 32

	defaultVerifyNew   = time.Hour
	defaultVerifyAll   = 24 * time.Hour
	defaultVerifyLimit = time.Hour
)

// settings maps each variable to its field. An unknown variable with the prefix PURSER_
// is an error.
var settings = map[string]func(*config, string) error{
	"DATABASE_URL":        func(c *config, v string) error { c.databaseURL = v; return nil },
	"PURSER_ADDR":         func(c *config, v string) error { c.addr = v; return nil },
	"PURSER_DATA":         func(c *config, v string) error { c.data = v; return nil },
	"PURSER_BASE_URL":     (*config).setBaseURL,
	"PURSER_DRAIN":        (*config).setDrain,
	"PURSER_MEMORY_LIMIT": (*config).setMemoryLimit,
	"PURSER_LOG_LEVEL":    (*config).setLogLevel,
	"PURSER_LOG_REQUESTS": (*config).setLogRequests,
	"PURSER_METRICS_ADDR": func(c *config, v string) error { return setHostPort(&c.metricsAddr, v) },
	"PURSER_SECRET_KEY":   func(c *config, v string) error { return setKey(&c.secretKey, v) },
	"PURSER_SANDBOX":      func(c *config, v string) error { return setSwitch(&c.sandboxOff, v, "off", "on") },
	"PURSER_SANDBOX_ADDR": func(c *config, v string) error { return setHostPort(&c.sandboxAddr, v) },

	"PURSER_SECRET_KEY_PREVIOUS": func(c *config, v string) error { return setKey(&c.previousKey, v) },
	"PURSER_TRUSTED_PROXY":       func(c *config, v string) error { return appendNetworks(&c.trustedProxies, v) },
	"PURSER_WEBHOOK_NETWORKS":    func(c *config, v string) error { return appendNetworks(&c.webhookNetworks, v) },

	"PURSER_DB_CONNS": func(c *config, v string) error {
		return setNumber(&c.databaseConns, v, "database connections", minDatabaseConns, maxDatabaseConns)
	},
	"PURSER_MAX_CONNECTIONS": func(c *config, v string) error {
		return setNumber(&c.maxConnections, v, "connections", 1, mostConnections)
	},
	"PURSER_RATE_LIMIT": func(c *config, v string) error {
		return setNumber(&c.rateLimit, v, "requests per second (0 for no limit)", 0, math.MaxInt32)
	},
	"PURSER_NOTIFICATION_DAYS": func(c *config, v string) error {
		return setNumber(&c.notificationDays, v, "days", 1, maxNotificationDays)
	},

	"PURSER_NEW_ORGANIZATIONS": func(c *config, v string) error { return setSwitch(&c.newOrganizations, v, "on", "off") },
	"PURSER_SECOND_FACTOR":     func(c *config, v string) error { return setSwitch(&c.requireFactor, v, "required", "optional") },
	"PURSER_SMTP_URL":          (*config).setSMTP,
	"PURSER_MAIL_FROM":         func(c *config, v string) (err error) { c.mailFrom, err = mail.ParseSender(v); return err },
	"PURSER_KEEP_FAILURES":     func(c *config, v string) error { return setInterval(&c.keepFailures, v, time.Hour) },
	"PURSER_KEEP_DENIALS":      func(c *config, v string) error { return setInterval(&c.keepDenials, v, time.Hour) },

	"PURSER_VERIFY_NEW":   func(c *config, v string) error { return setInterval(&c.verifyNew, v, 0) },
	"PURSER_VERIFY_ALL":   func(c *config, v string) error { return setInterval(&c.verifyAll, v, 0) },
	"PURSER_VERIFY_LIMIT": func(c *config, v string) error { return setInterval(&c.verifyLimit, v, time.Second) },
}

// clientVariables are set by the guides for API clients, often in the shell that runs
// this program.
var clientVariables = []string{"PURSER_KEY", "PURSER_URL"}

// readConfig reads the environment. Errors never contain values: they may be secrets.
func readConfig(environ []string) (config, error) {
	c := config{
		addr: "127.0.0.1:8080", data: "./data", rateLimit: defaultRateLimit, databaseConns: defaultDatabaseConns,
		drain: defaultDrain, memoryLimit: defaultMemoryLimit, maxConnections: defaultMaxConnections,
		logLevel: slog.LevelInfo, logSuccesses: defaultRequestLines, logRefusals: defaultRequestLines,
		keepFailures: reports.DefaultKeepFailures, keepDenials: reports.DefaultKeepDenials,
		verifyNew: defaultVerifyNew, verifyAll: defaultVerifyAll, verifyLimit: defaultVerifyLimit,
	}
	var problems []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		set, known := settings[name]
		if !known {
			if strings.HasPrefix(name, "PURSER_") && !slices.Contains(clientVariables, name) {
				problems = append(problems, fmt.Errorf("unknown setting %s: see 'purser help'", name))
			}
			continue
		}
		if value == "" {
			continue
		}
		if err := set(&c, value); err != nil {
			problems = append(problems, fmt.Errorf("%s %w", name, err))
		}
	}
	if len(problems) == 0 && (c.smtp != nil) != (c.mailFrom.Address != "") {
		problems = append(problems, errors.New("PURSER_SMTP_URL and PURSER_MAIL_FROM must be set together: the server and the address that mails come from"))
	}
	return c, errors.Join(problems...)
}

func (c *config) setSMTP(value string) error {
	server, err := mail.ParseServer(value)
	if err != nil {
		return err
	}
	c.smtp = &server
	return nil
}

// linkHint warns about links that lead nowhere.
func (c *config) linkHint() string {
	switch host, _, _ := net.SplitHostPort(c.addr); {
	case c.baseURL != "":
		return ""
	case isWildcard(host):
		return "PURSER_BASE_URL is not set: links lead to 127.0.0.1, which other machines can't reach"
	case c.smtp != nil:
		return "PURSER_BASE_URL is not set: the links in mails lead to the listening address"
	}
	return ""
}

// setDefaultBaseURL derives the base URL from the listen address, unless it is set. For a
// wildcard it is this machine.
func (c *config) setDefaultBaseURL(addr string) {
	if c.baseURL != "" {
		return
	}
	if host, port, err := net.SplitHostPort(addr); err == nil && isWildcard(host) {
		addr, c.listensOnAll = net.JoinHostPort("127.0.0.1", port), true
	}
	c.baseURL = "http://" + addr
}

// isWildcard reports whether the host of a listen address is empty or unspecified, such as 0.0.0.0.
func isWildcard(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// verifyIntervals are the intervals of verifications by kind; zero for kinds that are off.
func (c *config) verifyIntervals() map[verify.Kind]time.Duration {
	return map[verify.Kind]time.Duration{verify.NewEntries: c.verifyNew, verify.AllEntries: c.verifyAll, verify.WholeInstallation: c.verifyAll}
}

func (c *config) setBaseURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("must be an address such as https://billing.example.com")
	}
	c.baseURL = strings.TrimSuffix(value, "/")
	return nil
}

// setHostPort parses a listen address.
func setHostPort(to *string, value string) error {
	if !isHostPort(value) {
		return errors.New("must be HOST:PORT, such as 127.0.0.1:9090, with a port from 1 to 65535")
	}
	*to = value
	return nil
}

func isHostPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if err == nil && port != "" {
		_, err = net.LookupPort("tcp", port)
	}
	return err == nil && port != ""
}

func (c *config) setDrain(value string) error {
	drain, err := time.ParseDuration(value)
	if err != nil || drain < 0 || drain > maxDrain {
		return fmt.Errorf("must be a duration such as 5s, at most %s, 0s for none", maxDrain)
	}
	c.drain = drain
	return nil
}

func (c *config) setLogLevel(value string) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, known := levels[value]
	if !known {
		return errors.New("must be debug, info, warn or error")
	}
	c.logLevel = level
	return nil
}

func (c *config) setLogRequests(value string) (err error) {
	c.logSuccesses, c.logRefusals, err = parseRequestLog(value)
	return err
}

// setNumber parses a whole number.
func setNumber[T int | float64](to *T, value, noun string, least, most int) error {
	number, err := strconv.Atoi(value)
	if err != nil || number < least || number > most {
		return fmt.Errorf("must be a whole number of %s, from %d to %d", noun, least, most)
	}
	*to = T(number)
	return nil
}

// appendNetworks parses addresses and networks. A network that contains all addresses is
// refused: any client behind such a proxy could forge its own.
func appendNetworks(list *[]netip.Prefix, value string) error {
	for text := range strings.SplitSeq(value, ",") {
		text = strings.TrimSpace(text)
		network, err := netip.ParsePrefix(text)
		if address, single := netip.ParseAddr(text); single == nil {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil || network.Bits() == 0 {
			return errors.New("must be a comma-separated list of addresses or networks, such as 10.0.0.0/8, fd00::/8, and not all addresses")
		}
		*list = append(*list, network.Masked())
	}
	return nil
}

// proxyHint warns about a proxy that is not declared. The server does not terminate TLS,
// so a public https URL implies a proxy.
func (c *config) proxyHint() string {
	if !strings.HasPrefix(c.baseURL, "https://") || len(c.trustedProxies) > 0 {
		return ""
	}
	return "PURSER_TRUSTED_PROXY is not set: all clients behind the proxy count as one network and share its limits"
}

// setInterval parses a duration such as 90m.
func setInterval(d *time.Duration, value string, least time.Duration) error {
	parsed, err := time.ParseDuration(value)
	if err != nil || parsed < least {
		return fmt.Errorf("must be a duration such as 30m or 24h, at least %s", least)
	}
	*d = parsed
	return nil
}

// durationFlag defines a flag with a duration that is not negative.
func durationFlag(flags *flag.FlagSet, to *time.Duration, name, usage string) {
	flags.Func(name, usage, func(text string) error { return setInterval(to, text, 0) })
}

// setSwitch parses one of two words.
func setSwitch(to *bool, value, on, off string) error {
	if value != on && value != off {
		return fmt.Errorf("must be %s or %s", on, off)
	}
	*to = value == on
	return nil
}

func setKey(key *string, value string) error {
	if len(value) < minSecretKey {
		return fmt.Errorf("must have at least %d characters", minSecretKey)
	}
	*key = value
	return nil
}

// parse reads a command's flags and refuses extra arguments.
func (c *config) parse(flags *flag.FlagSet, args []string) error {
	flags.StringVar(&c.data, "data", c.data, "folder of the embedded database (PURSER_DATA)")
	return parseFlags(flags, args)
}

// parseFile is parse for commands with a file as their one argument, before or after flags.
func (c *config) parseFile(flags *flag.FlagSet, args []string) (path string, err error) {
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		path, args = args[0], args[1:]
	} else if last := len(args) - 1; last >= 0 {
		path, args = args[last], args[:last]
	}
	if path == "-h" || path == "-help" || path == "--help" {
		return "", c.parse(flags, []string{path}) // shows the flags
	}
	if path == "" || strings.HasPrefix(path, "-") {
		return "", fmt.Errorf("%s: name a file, such as 'purser %s purser.dump'", flags.Name(), flags.Name())
	}
	return path, c.parse(flags, args)
}

// parseFlags is parse for commands without a database.
func parseFlags(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard) // the returned error is shorter
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return err
	case err != nil:
		return fmt.Errorf("%s: %w: see 'purser help'", flags.Name(), err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

func (c *config) checkAddr() error {
	if !isHostPort(c.addr) {
		return errors.New("--addr (PURSER_ADDR) must be HOST:PORT, such as 127.0.0.1:8080, with a port from 1 to 65535")
	}
	return nil
}
