package main

import (
	"archive/tar"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// One platform is that of the test, so that its binary can be run and comes from the
// cache. The loop over platforms is the same for four.
func TestAReleaseIsWholeAndReproducible(t *testing.T) {
	t.Chdir("../..")
	compression = gzip.BestSpeed
	s := stamp{"1.2.3", strings.Repeat("a", 40), time.Date(2026, 11, 16, 2, 49, 35, 0, time.UTC)}
	here := runtime.GOOS + "/" + runtime.GOARCH
	folder := filepath.Join(t.TempDir(), "release")
	if err := release(t.Context(), s, []string{here}, folder); err != nil {
		t.Fatal(err)
	}
	archive := "purser-1.2.3-" + strings.ReplaceAll(here, "/", "-") + ".tar.gz"
	want := []string{"SHA256SUMS", "THIRD-PARTY-NOTICES.txt", archive, "purser-1.2.3.cdx.json"}
	if got := names(t, folder); !slices.Equal(got, want) {
		t.Fatalf("the release has %v", got)
	}
	check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	check.Dir = folder
	if out, err := check.CombinedOutput(); err != nil || strings.Count(string(out), ": OK") != len(want)-1 {
		t.Errorf("sha256sum: %v\n%s", err, out)
	}

	files := unpack(t, filepath.Join(folder, archive))
	for _, name := range []string{"purser", "LICENSE", "README.md", "CHANGELOG.md", "deploy/purser.service", "deploy/compose.yaml", "THIRD-PARTY-NOTICES.txt"} {
		if len(files["purser-1.2.3/"+name]) == 0 {
			t.Errorf("the archive has no %s", name)
		}
	}
	links := regexp.MustCompile(`(?:\]\(|src(?:set)?=")([^)#":]+)[)#"]`).FindAllSubmatch(files["purser-1.2.3/README.md"], -1)
	if len(links) < 10 {
		t.Errorf("the README has %d links to files", len(links))
	}
	for _, link := range links {
		if len(files["purser-1.2.3/"+string(link[1])]) == 0 {
			t.Errorf("the README links to %s, which the archive has not", link[1])
		}
	}
	named := regexp.MustCompile(`\bdeploy/[a-z][a-z./]*[a-z]`).FindAllString(string(files["purser-1.2.3/docs/install.md"]), -1)
	for _, path := range append(named, "deploy/chart/values.yaml", "deploy/chart/values.schema.json", "deploy/chart/templates/_helpers.tpl") {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(files)), func(file string) bool { return strings.HasPrefix(file+"/", "purser-1.2.3/"+path+"/") }) {
			t.Errorf("the archive has no %s, though the guide names it", path)
		}
	}
	binary := filepath.Join(t.TempDir(), "purser")
	if err := os.WriteFile(binary, files["purser-1.2.3/purser"], 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), binary, "version").Output()
	if err != nil || !strings.Contains(string(out), "purser 1.2.3\ncommit "+s.commit+"\nbuilt  2026-11-16T02:49:35Z\n") {
		t.Errorf("%q, %v", out, err)
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}

	var bill struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	text, err := os.ReadFile(filepath.Join(folder, "purser-1.2.3.cdx.json"))
	if err == nil {
		err = json.Unmarshal(text, &bill)
	}
	if err != nil || bill.BOMFormat != "CycloneDX" || len(bill.Components) != len(info.Deps)+1 {
		t.Errorf("%d components for %d modules, %v", len(bill.Components), len(info.Deps), err)
	}
	notices := string(files["purser-1.2.3/THIRD-PARTY-NOTICES.txt"])
	for _, dep := range info.Deps {
		if !strings.Contains(notices, "\n"+dep.Path+" "+dep.Version+", ") {
			t.Errorf("the notices do not name %s", dep.Path)
		}
	}
	for _, asset := range []string{"htmx, ", "inter, ", "std "} {
		if !strings.Contains(notices, "\n"+asset) {
			t.Errorf("the notices do not name %s", asset)
		}
	}

	again := filepath.Join(t.TempDir(), "again")
	if err := release(t.Context(), s, []string{here}, again); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(filepath.Join(again, "SHA256SUMS")); err != nil || string(first) != string(second) {
		t.Errorf("two runs differ: %v\n%s%s", err, first, second)
	}
}

func names(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func unpack(t *testing.T, path string) map[string][]byte {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}
