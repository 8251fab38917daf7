package embedded

import (
	"errors"
	"os"
	"strings"
	"testing"
)

func TestSizeFor(t *testing.T) {
	t.Parallel()
	for memory, want := range map[int]sizes{
		256:     {sharedBuffers: 128, cache: 256, maintenance: 32},
		1024:    {sharedBuffers: 128, cache: 512, maintenance: 32},
		4096:    {sharedBuffers: 512, cache: 2048, maintenance: 128},
		24576:   {sharedBuffers: 2048, cache: 12288, maintenance: 256},
		1 << 20: {sharedBuffers: 2048, cache: 1 << 19, maintenance: 256},
	} {
		if got := sizeFor(memory); got != want {
			t.Errorf("for %d MiB: %+v, want %+v", memory, got, want)
		}
	}
}

func TestSharedMemoryNeedsNoRoomInItsFolder(t *testing.T) {
	t.Parallel()
	for name, sample := range map[string]struct {
		system, folder string
		least          uint64
		want           string
	}{
		"a folder with room":      {"linux", t.TempDir(), 1, ""},
		"a folder without room":   {"linux", t.TempDir(), 1 << 62, "dynamic_shared_memory_type = sysv"},
		"a folder that is absent": {"linux", "/nonexistent", 1, "dynamic_shared_memory_type = sysv"},
		"macOS, which has none":   {"darwin", "/nonexistent", 1, ""},
	} {
		if got := sharedMemory(sample.system, sample.folder, sample.least); got != sample.want {
			t.Errorf("%s: %q, want %q", name, got, sample.want)
		}
	}
}

func TestTrimLog(t *testing.T) {
	t.Parallel()
	const limit = 100
	c := clusterIn(t.TempDir())
	log, err := c.openLog()
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func(text string) {
		if _, err := log.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := c.trimLog(limit); err != nil {
			t.Fatal(err)
		}
	}

	write(strings.Repeat("a", limit))
	if _, err := os.Stat(c.path(logName + ".1")); c.logSize() != limit || !os.IsNotExist(err) {
		t.Errorf("a log at its limit was put aside: %v", err)
	}
	write("b")
	if aside, err := os.ReadFile(c.path(logName + ".1")); c.logSize() != 0 || len(aside) != limit+1 {
		t.Errorf("a log past its limit was not put aside: %d bytes, %v", len(aside), err)
	}
	write("c")
	if text, err := os.ReadFile(c.path(logName)); string(text) != "c" {
		t.Errorf("after it was put aside the log holds %q, %v", text, err)
	}

	// As one that root made is for another user, this one can't be opened.
	aside := c.path(logName + ".1")
	if err := errors.Join(os.Remove(aside), os.Symlink("/nonexistent/log", aside)); err != nil {
		t.Fatal(err)
	}
	write(strings.Repeat("d", limit))
	if text, err := os.ReadFile(aside); len(text) != limit+1 {
		t.Errorf("over one that can't be opened, %d bytes were put aside, %v", len(text), err)
	}
}
