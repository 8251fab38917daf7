package main

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"purser/ids"
	"purser/metering/monthly"
	"purser/store/embedded"
)

const (
	entriesSuffix  = ".entries.jsonl.gz"
	walletsSuffix  = ".wallets.jsonl.gz"
	manifestSuffix = ".json"
	partialSuffix  = ".partial"
	// maxManifest bounds a manifest, which has each credit of an application.
	maxManifest = 16 << 20
)

// monthFolder has the monthly files of one application. A month is there when its manifest
// is: that is written last.
type monthFolder struct{ path, application string }

func makeFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	return embedded.SyncFolder(filepath.Dir(path))
}

// months lists the months that have a manifest, in order.
func (f monthFolder) months() (list []monthly.Month, err error) {
	files, err := os.ReadDir(f.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	for _, file := range files {
		if name, found := strings.CutSuffix(file.Name(), manifestSuffix); found {
			month, err := monthly.ParseMonth(name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file.Name(), err)
			}
			list = append(list, month)
		}
	}
	slices.Sort(list)
	return list, err
}

func (f monthFolder) file(month monthly.Month, suffix string) string {
	return filepath.Join(f.path, string(month)+suffix)
}

func (f monthFolder) manifest(month monthly.Month) (*monthly.Manifest, error) {
	file, err := os.Open(f.file(month, manifestSuffix))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxManifest))
	if err != nil {
		return nil, err
	}
	m, err := monthly.ParseManifest(text)
	if err == nil && (m.Application != f.application || m.Month != month) {
		err = fmt.Errorf("it is of %s in %s", m.Application, m.Month)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return &m, nil
}

// write writes a month, reads it back, and gives it its manifest. What an interrupted export
// left of the month is replaced.
func (f monthFolder) write(
	previous *monthly.Manifest, month monthly.Month, fill func(*monthly.Writer, *monthly.Closings) error,
) (m monthly.Manifest, size int64, err error) {
	opening, err := f.openings(previous)
	if err != nil {
		return m, 0, err
	}
	defer opening.Close()
	entries, err := createPacked(f.file(month, entriesSuffix) + partialSuffix)
	if err != nil {
		return m, 0, err
	}
	defer entries.close()
	wallets, err := createPacked(f.file(month, walletsSuffix) + partialSuffix)
	if err != nil {
		return m, 0, err
	}
	defer wallets.close()
	w := monthly.NewWriter(f.application, month, entries, wallets)
	if err := fill(w, monthly.ReadClosings(opening.reader())); err != nil {
		return m, 0, err
	}
	for _, file := range []*packed{entries, wallets} {
		written, err := file.finish()
		if err != nil {
			return m, 0, err
		}
		size += written
	}
	if m, err = w.Manifest(previous); err != nil {
		return m, 0, err
	}
	if err := f.check(m, previous, partialSuffix); err != nil {
		return m, 0, fmt.Errorf("reading back what was written: %w", err)
	}
	return m, size, f.publish(m)
}

// publish gives the files of a month their names, the manifest last.
func (f monthFolder) publish(m monthly.Manifest) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	manifest := f.file(m.Month, manifestSuffix)
	if err := writeSynced(manifest+partialSuffix, text); err != nil {
		return err
	}
	for _, suffix := range []string{entriesSuffix, walletsSuffix} {
		if err := os.Rename(f.file(m.Month, suffix)+partialSuffix, f.file(m.Month, suffix)); err != nil {
			return err
		}
	}
	if err := embedded.SyncFolder(f.path); err != nil {
		return err
	}
	if err := os.Rename(manifest+partialSuffix, manifest); err != nil {
		return err
	}
	return embedded.SyncFolder(f.path)
}

func writeSynced(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// openings opens the wallets of the month before, after a comparison with its manifest.
func (f monthFolder) openings(previous *monthly.Manifest) (*unpacked, error) {
	if previous == nil {
		return nil, nil
	}
	path := f.file(previous.Month, walletsSuffix)
	file, err := openPacked(path)
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if hex.EncodeToString(hash.Sum(nil)) != previous.WalletsSHA256 {
		return nil, fmt.Errorf("%s is not the file of its manifest", path)
	}
	return openPacked(path)
}

// check reads a month whose files have their names, or a further suffix.
func (f monthFolder) check(m monthly.Manifest, previous *monthly.Manifest, suffix string) error {
	opening, err := f.openings(previous)
	if err != nil {
		return err
	}
	defer opening.Close()
	entries, err := openPacked(f.file(m.Month, entriesSuffix) + suffix)
	if err != nil {
		return err
	}
	defer entries.Close()
	wallets, err := openPacked(f.file(m.Month, walletsSuffix) + suffix)
	if err != nil {
		return err
	}
	defer wallets.Close()
	return monthly.Check(m, monthly.Files{Entries: entries, Wallets: wallets}, previous, opening.reader())
}

// checkMonths checks every application's files in a folder, and prints a digest to keep
// elsewhere: it shows even files that were all written again.
func checkMonths(path string, out io.Writer) error {
	files, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	var applications, months, entries int64
	for _, file := range files {
		if _, err := ids.Parse(ids.Application, file.Name()); err != nil || !file.IsDir() {
			continue
		}
		folder := monthFolder{filepath.Join(path, file.Name()), file.Name()}
		list, err := folder.months()
		if err != nil {
			return fmt.Errorf("%s: %w", folder.application, err)
		}
		var previous *monthly.Manifest
		for _, month := range list {
			m, err := folder.manifest(month)
			if err == nil {
				err = folder.check(*m, previous, "")
			}
			if err != nil {
				return fmt.Errorf("%s: %w", folder.application, err)
			}
			previous, months, entries = m, months+1, entries+m.Entries
		}
		if previous == nil {
			continue
		}
		applications++
		digest, err := previous.Sum()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: complete through %s, digest %s.\n", folder.application, previous.Month, digest)
	}
	if months == 0 {
		return fmt.Errorf("%s has no monthly files", path)
	}
	_, err = fmt.Fprintf(out, "%s, %s, %s: every entry follows from the one before.\n", counted(applications, "application", "applications"),
		counted(months, "month", "months"), counted(entries, "entry", "entries"))
	return err
}

// packed is a compressed file that is being written.
type packed struct {
	file   *os.File
	buffer *bufio.Writer
	*gzip.Writer
}

func createPacked(path string) (*packed, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	buffer := bufio.NewWriterSize(file, 64<<10)
	return &packed{file, buffer, gzip.NewWriter(buffer)}, nil
}

// finish has everything on the disk, and returns the size.
func (p *packed) finish() (size int64, err error) {
	if err := errors.Join(p.Writer.Close(), p.buffer.Flush(), p.file.Sync()); err != nil {
		return 0, err
	}
	info, err := p.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (p *packed) close() { _ = p.file.Close() }

// unpacked is a compressed file that is read. Nil has nothing.
type unpacked struct {
	file *os.File
	*gzip.Reader
}

func openPacked(path string) (*unpacked, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(bufio.NewReaderSize(file, 64<<10))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	return &unpacked{file, reader}, nil
}

// Close also closes the file.
func (u *unpacked) Close() error {
	if u == nil {
		return nil
	}
	return errors.Join(u.Reader.Close(), u.file.Close())
}

func (u *unpacked) reader() io.Reader {
	if u == nil {
		return nil
	}
	return u
}
