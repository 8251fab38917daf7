package embedded

import (
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
)

const (
	logLimit  = 16 << 20 // bytes in postgres.log before it is put aside
	tailBytes = 4 << 10  // of the log, searched for an error's text

	complaintLines = 3 // of the log, in an error
)

// openLog opens the file for Postgres to write to. It appends, so that the file
// can be emptied under it.
func (c *cluster) openLog() (*os.File, error) {
	if err := c.trimLog(logLimit); err != nil {
		return nil, err
	}
	return os.OpenFile(c.path(logName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// trimLog moves a log past the limit to the old log, which it replaces.
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
	// Replaced, not overwritten: it may be of another user, such as root.
	aside := c.path(logName + ".1")
	if err := os.Remove(aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to, err := os.OpenFile(aside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
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
	return ": Postgres says " + complaints(text) + "; all of it is in " + c.path(logName)
}

// complaint is a line of Postgres or initdb about what went wrong, without time and
// process.
var complaint = regexp.MustCompile(`(?m)(?:^|\] \S* ?)((?:initdb: )?(?:LOG|ERROR|FATAL|PANIC|HINT|error|hint):\s.*)$`)

// complaints are the last lines that say what went wrong, in one line. When none
// does, it is the last line of all.
func complaints(text []byte) string {
	var found []string
	for _, match := range complaint.FindAllSubmatch(text, -1) {
		line := spaces.ReplaceAllString(string(match[1]), " ")
		if !strings.HasPrefix(line, "LOG: ") || strings.Contains(line, "invalid") || strings.Contains(line, "could not") {
			found = append(found, line)
		}
	}
	if len(found) == 0 {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return lines[len(lines)-1]
	}
	return strings.Join(found[max(0, len(found)-complaintLines):], "; ")
}

var spaces = regexp.MustCompile(`\s+`)
