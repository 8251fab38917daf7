package main

import (
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// platforms are those that archives are built for.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}

// stamp is what `purser version` tells.
type stamp struct {
	version, commit string
	built           time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var s stamp
	var built, only string
	flag.StringVar(&s.version, "version", "", "version of the release")
	flag.StringVar(&s.commit, "commit", "", "commit of the release")
	flag.StringVar(&built, "built", "", "time of the commit, such as 2026-11-16T02:49:35Z")
	flag.StringVar(&only, "platforms", strings.Join(platforms, ","), "platforms to build for")
	folder := flag.String("out", "bin/release", "folder to write to")
	binary := flag.String("notices", "", "only print the third-party notices of this binary")
	flag.Parse()
	err := errors.New("-version and -commit are required")
	switch {
	case *binary != "":
		err = printNotices(ctx, *binary)
	case s.version != "" && s.commit != "":
		if s.built, err = time.Parse(time.RFC3339, built); err == nil {
			err = release(ctx, s, strings.Split(only, ","), *folder)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// printNotices prints the notices of a binary that is packed elsewhere, as in an image.
func printNotices(ctx context.Context, binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	notices, err := thirdParty(ctx, merge(nil, info))
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(notices)
	return err
}

// release fills the folder, which is emptied first.
func release(ctx context.Context, s stamp, platforms []string, folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	binaries := map[string]string{}
	var modules []module
	for _, platform := range platforms {
		binary := filepath.Join(folder, "purser-"+strings.ReplaceAll(platform, "/", "-"))
		if err := build(ctx, s, platform, binary); err != nil {
			return err
		}
		binaries[platform] = binary
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return err
		}
		modules = merge(modules, info)
	}
	notices, err := thirdParty(ctx, modules)
	if err != nil {
		return err
	}
	var written []string
	write := func(name string, content []byte) error {
		written = append(written, name)
		return os.WriteFile(filepath.Join(folder, name), content, 0o644)
	}
	bill, err := billOfMaterials(s, modules)
	if err != nil {
		return err
	}
	if err := write("purser-"+s.version+".cdx.json", bill); err != nil {
		return err
	}
	if err := write("THIRD-PARTY-NOTICES.txt", notices); err != nil {
		return err
	}
	for _, platform := range platforms {
		name := fmt.Sprintf("purser-%s-%s.tar.gz", s.version, strings.ReplaceAll(platform, "/", "-"))
		if err := pack(filepath.Join(folder, name), s, binaries[platform], notices); err != nil {
			return err
		}
		if err := os.Remove(binaries[platform]); err != nil {
			return err
		}
		written = append(written, name)
	}
	return writeChecksums(folder, written)
}

// build makes a binary without cgo, so that it needs no library of the machine.
func build(ctx context.Context, s stamp, platform, path string) error {
	system, arch, _ := strings.Cut(platform, "/")
	values := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s -X main.built=%s", s.version, s.commit, s.built.UTC().Format(time.RFC3339))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", values, "-o", path, "./cmd/purser")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	fmt.Fprintln(os.Stderr, "Building for", platform)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("building for %s: %w", platform, err)
	}
	return nil
}

// writeChecksums writes a file that `sha256sum --check` reads.
func writeChecksums(folder string, names []string) error {
	slices.Sort(names)
	var lines strings.Builder
	for _, name := range names {
		sum, err := checksum(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sum, name)
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), []byte(lines.String()), 0o644)
}

func checksum(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return hash.Sum(nil), err
}
