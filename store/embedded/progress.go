package embedded

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

// progressLook is the pause between two looks at the log for the progress of a recovery, which
// Postgres writes every ten seconds.
const progressLook = time.Second

// progressLine is what Postgres logs while it recovers from a crash: where it replays the
// write-ahead log, or which file it syncs or resets.
var progressLine = regexp.MustCompile(`LOG:  ([^\n]*), elapsed time: [0-9.]+ s, (current (?:LSN|path): [^\n]*)\n`)

// whileItProgresses is a context that ends when for the start limit neither end is called nor the
// log shows that a recovery advances. A recovery takes as long as it takes: a process manager
// that ends our processes with us would otherwise make it start over each time.
func (c *cluster) whileItProgresses(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	offset, last := c.logSize(), ""
	go func() {
		look := time.NewTicker(progressLook)
		defer look.Stop()
		advanced := time.Now()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			phase, at := c.progressSince(&offset)
			if at != "" && at != last {
				advanced, last = time.Now(), at
				c.log.Info("embedded Postgres recovers from a crash", "phase", phase, "at", at)
			}
			if time.Since(advanced) >= startLimit {
				cancel(fmt.Errorf("no progress for %s: %w", startLimit, context.DeadlineExceeded))
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// progressSince is the last complete line of progress in the log after the offset, which it
// advances.
func (c *cluster) progressSince(offset *int64) (phase, at string) {
	file, err := os.Open(c.path(logName))
	if err != nil {
		return "", ""
	}
	defer file.Close()
	if c.logSize() < *offset {
		*offset = 0 // put aside meanwhile
	}
	text, err := io.ReadAll(io.NewSectionReader(file, *offset, logLimit))
	if err != nil {
		return "", ""
	}
	found := progressLine.FindAllSubmatchIndex(text, -1)
	if len(found) == 0 {
		return "", ""
	}
	line := found[len(found)-1]
	*offset += int64(line[1])
	return string(text[line[2]:line[3]]), string(text[line[4]:line[5]])
}
