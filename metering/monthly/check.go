package monthly

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// MaxLine is how long a line may be, in bytes: the closing of a wallet with entries of every
// credit that an application can have. It holds no more than 100 of them, but usage that costs
// nothing has an entry, too.
const MaxLine = 2 << 20

// Files are the contents of a month's files.
type Files struct{ Entries, Wallets io.Reader }

// Check reads a month and holds it to its manifest and to the month before: every entry
// follows from the one before, every closing from the entries, and the manifest from both.
// Before and opening are nil for the first month. It keeps one wallet in memory.
func Check(m Manifest, files Files, before *Manifest, opening io.Reader) error {
	if before != nil && before.Month.Next() != m.Month {
		return fmt.Errorf("%s follows %s", m.Month, before.Month)
	}
	if before != nil && before.Application != m.Application {
		return fmt.Errorf("%s is of %s, and %s of %s", m.Month, m.Application, before.Month, before.Application)
	}
	// The sums are over the bytes that were read: lines could end in another way.
	entriesSum, walletsSum := sha256.New(), sha256.New()
	c := checker{
		writer:   NewWriter(m.Application, m.Month, io.Discard, io.Discard),
		entries:  newLines[Entry](io.TeeReader(files.Entries, entriesSum)),
		closings: newLines[Closing](io.TeeReader(files.Wallets, walletsSum)),
		openings: ReadClosings(opening),
	}
	for {
		closing, _, err := c.closings.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: wallets: %w", m.Month, err)
		}
		if err := c.wallet(closing); err != nil {
			return fmt.Errorf("%s: %w", m.Month, err)
		}
	}
	if rest, _, err := c.entries.next(); !errors.Is(err, io.EOF) {
		return errors.Join(fmt.Errorf("%s: entry %d of wallet %s has no closing", m.Month, rest.Seq, rest.Wallet), err)
	}
	if err := c.openings.End(); err != nil {
		return fmt.Errorf("%s: %w", m.Month, err)
	}
	found, err := c.writer.Manifest(before)
	if err != nil {
		return err
	}
	if hex.EncodeToString(entriesSum.Sum(nil)) != m.EntriesSHA256 || hex.EncodeToString(walletsSum.Sum(nil)) != m.WalletsSHA256 || !found.same(m) {
		return fmt.Errorf("%s: the manifest is not that of the files and of the month before", m.Month)
	}
	return nil
}

type checker struct {
	writer   *Writer
	entries  *lines[Entry]
	closings *lines[Closing]
	openings *Closings
}

// wallet follows one wallet from its opening to its closing.
func (c *checker) wallet(closing Closing) error {
	account, err := c.openings.Account(c.writer.application, closing.Wallet)
	if err != nil {
		return err
	}
	for {
		e, line, err := c.entries.peek()
		if errors.Is(err, io.EOF) || err == nil && e.Wallet != closing.Wallet {
			break
		}
		if err != nil {
			return fmt.Errorf("entries: %w", err)
		}
		again, err := e.Line()
		if err != nil || string(again) != string(line) {
			return fmt.Errorf("entry %d of wallet %s is not written as this release writes it", e.Seq, e.Wallet)
		}
		if err := c.writer.Take(account, e); err != nil {
			return err
		}
		c.entries.skip()
	}
	copied := *account
	want, err := copied.Close().Line()
	if err != nil {
		return err
	}
	if says, err := closing.Line(); err != nil || string(says) != string(want) {
		return fmt.Errorf("the closing of wallet %s is not that of its entries", closing.Wallet)
	}
	return c.writer.Close(account)
}

// lines reads a file line by line. A nil reader has none.
type lines[T any] struct {
	scan   *bufio.Scanner
	value  T
	line   []byte
	peeked bool
	err    error
}

func newLines[T any](from io.Reader) *lines[T] {
	l := &lines[T]{}
	if from == nil {
		l.peeked, l.err = true, io.EOF
		return l
	}
	l.scan = bufio.NewScanner(from)
	l.scan.Buffer(make([]byte, 0, 4<<10), MaxLine)
	return l
}

// peek returns the next line without passing it; io.EOF at the end. The bytes are valid
// until the line is passed.
func (l *lines[T]) peek() (T, []byte, error) {
	if !l.peeked {
		l.peeked = true
		var value T
		switch {
		case l.scan.Scan():
			l.line = l.scan.Bytes()
			l.err = json.Unmarshal(l.line, &value)
		case l.scan.Err() != nil:
			l.err = l.scan.Err()
		default:
			l.err = io.EOF
		}
		l.value = value
	}
	return l.value, l.line, l.err
}

// skip passes the line that was peeked. An error stays.
func (l *lines[T]) skip() { l.peeked = l.err != nil }

func (l *lines[T]) next() (T, []byte, error) {
	value, line, err := l.peek()
	l.skip()
	return value, line, err
}

// Closings reads the wallets of the month before, in the order of their ids.
type Closings struct{ lines *lines[Closing] }

// ReadClosings begins to read a file of wallets; nil has none.
func ReadClosings(from io.Reader) *Closings { return &Closings{newLines[Closing](from)} }

// Account continues a wallet: from its closing, or from nothing. Wallets must be asked for
// in the order of their ids, and none of the month before may be left out.
func (c *Closings) Account(application, wallet string) (*Account, error) {
	closing, _, err := c.lines.peek()
	switch {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, err
	case closing.Wallet < wallet:
		return nil, fmt.Errorf("wallet %s of the month before is missing", closing.Wallet)
	case closing.Wallet == wallet:
		c.lines.skip()
		return Open(closing)
	}
	return NewAccount(application, wallet), nil
}

// End refuses wallets that were not asked for.
func (c *Closings) End() error {
	if closing, _, err := c.lines.peek(); !errors.Is(err, io.EOF) {
		return errors.Join(fmt.Errorf("wallet %s of the month before is missing", closing.Wallet), err)
	}
	return nil
}
