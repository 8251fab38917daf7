package embedded

import (
	"bytes"
	"errors"
	"io"
	"os"
)

const (
	logLimit  = 16 << 20 // bytes in postgres.log before it is put aside
	tailLines = 15       // of the log, in an error
	tailBytes = 4 << 10
)

// openLog opens the file for Postgres to write to. It appends, so that the file
// can be emptied under it.
func (c *cluster) openLog() (*os.File, error) {
	if err := c.trimLog(logLimit); err != nil {
		return nil, err
	}
	return os.OpenFile(c.path(logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// trimLog puts a log past the limit aside, over the one put aside before.
// Postgres keeps its file open, so it is copied and emptied, not renamed; a line
// written between the two is lost.
func (c *cluster) trimLog(limit int64) error {
	if c.logSize() <= limit {
		return nil
	}
	from, err := os.Open(c.path(logName))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(c.path(logName+".1"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Truncate(c.path(logName), 0)
}

func (c *cluster) logSize() int64 {
	info, err := os.Stat(c.path(logName))
	if err != nil {
		return 0
	}
	return info.Size()
}

// logSince is the end of what Postgres wrote after the log had this size, as the
// end of an error's text.
func (c *cluster) logSince(size int64) string {
	file, err := os.Open(c.path(logName))
	if err != nil {
		return ""
	}
	defer file.Close()
	if now := c.logSize(); now < size {
		size = 0 // put aside meanwhile
	} else {
		size = max(size, now-tailBytes)
	}
	text, err := io.ReadAll(io.NewSectionReader(file, size, tailBytes))
	if err != nil || len(text) == 0 {
		return ""
	}
	return "; the end of " + c.path(logName) + ":\n" + lastLines(text)
}

func lastLines(text []byte) string {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-tailLines):], []byte("\n")))
}
