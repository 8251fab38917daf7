package main

import (
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	defaultMemoryLimit = 512 << 20
	minMemoryLimit     = 128 << 20

	defaultMaxConnections = 10_000
	mostConnections       = 1<<20 - 1
)

// limitMemory sets the Go memory limit to three quarters of the setting: the rest is for
// memory that the runtime does not count, and for what is allocated while a collection
// runs. Password checks allocate 46 MiB each. GOMEMLIMIT takes precedence.
func limitMemory(environ []string) {
	c, err := readConfig(environ)
	if err != nil || c.memoryLimit == 0 || os.Getenv("GOMEMLIMIT") != "" {
		return // the command reports the error
	}
	debug.SetMemoryLimit(c.memoryLimit / 4 * 3)
}

func (c *config) setMemoryLimit(value string) error {
	problem := errors.New("must be a size of at least 128MiB, such as 512MiB or 2GiB, or 0 for no limit")
	if value == "0" {
		c.memoryLimit = 0
		return nil
	}
	for suffix, unit := range map[string]int64{"MiB": 1 << 20, "GiB": 1 << 30} {
		number, found := strings.CutSuffix(value, suffix)
		if !found {
			continue
		}
		count, err := strconv.ParseUint(number, 10, 20)
		if err != nil || int64(count)*unit < minMemoryLimit {
			return problem
		}
		c.memoryLimit = int64(count) * unit
		return nil
	}
	return problem
}
