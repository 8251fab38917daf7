package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// config is every setting, read once. The environment gives it, flags override it.
type config struct {
	addr        string
	data        string
	databaseURL string
	baseURL     string
	metricsAddr string
	rateLimit   float64
	secretKey   string
}

const (
	defaultRateLimit = 1000
	minSecretKey     = 32
)

// settings maps each variable to where it goes. Another one that starts with
// PURSER_ is a mistake, and is named.
var settings = map[string]func(*config, string) error{
	"DATABASE_URL":        func(c *config, v string) error { c.databaseURL = v; return nil },
	"PURSER_ADDR":         func(c *config, v string) error { c.addr = v; return nil },
	"PURSER_DATA":         func(c *config, v string) error { c.data = v; return nil },
	"PURSER_BASE_URL":     (*config).setBaseURL,
	"PURSER_METRICS_ADDR": (*config).setMetricsAddr,
	"PURSER_RATE_LIMIT":   (*config).setRateLimit,
	"PURSER_SECRET_KEY":   (*config).setSecretKey,
}

// readConfig reads the environment. Values are never repeated in errors: they may
// be secrets.
func readConfig(environ []string) (config, error) {
	c := config{addr: "127.0.0.1:8080", data: "./data", rateLimit: defaultRateLimit}
	var problems []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		set, known := settings[name]
		if !known {
			if strings.HasPrefix(name, "PURSER_") {
				problems = append(problems, fmt.Errorf("there is no setting %s: see 'purser help'", name))
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
	return c, errors.Join(problems...)
}

func (c *config) setBaseURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("must be an address such as https://billing.example.com")
	}
	c.baseURL = strings.TrimSuffix(value, "/")
	return nil
}

func (c *config) setMetricsAddr(value string) error {
	if _, port, err := net.SplitHostPort(value); err != nil || port == "" {
		return errors.New("must be HOST:PORT, such as 127.0.0.1:9090")
	}
	c.metricsAddr = value
	return nil
}

func (c *config) setRateLimit(value string) error {
	limit, err := strconv.ParseUint(value, 10, 31)
	if err != nil {
		return errors.New("must be a whole number of requests a second, 0 for no limit")
	}
	c.rateLimit = float64(limit)
	return nil
}

func (c *config) setSecretKey(value string) error {
	if len(value) < minSecretKey {
		return fmt.Errorf("must have at least %d characters", minSecretKey)
	}
	c.secretKey = value
	return nil
}

// parse reads a command's flags into the config and refuses what is left over.
func (c *config) parse(flags *flag.FlagSet, args []string, stderr io.Writer) error {
	flags.SetOutput(stderr)
	flags.StringVar(&c.data, "data", c.data, "folder of the embedded database (PURSER_DATA)")
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes no argument %q", flags.Name(), flags.Arg(0))
	}
	return nil
}

func (c *config) checkAddr() error {
	if _, port, err := net.SplitHostPort(c.addr); err != nil || port == "" {
		return errors.New("--addr (PURSER_ADDR) must be HOST:PORT, such as 127.0.0.1:8080")
	}
	return nil
}
