package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// besides are the files of the repository in every archive, as patterns: what an operator
// installs, and the documentation that the README links to.
var besides = []string{
	"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "ARCHITECTURE.md", "api/openapi.yaml", "docs/*.md", "docs/images/*.png",
	"deploy/purser.service", "deploy/compose.yaml", "deploy/chart/*.yaml", "deploy/chart/*.json", "deploy/chart/templates/*", "deploy/prometheus/*.yaml", "deploy/grafana/*.json",
}

// compression is that of archives. Tests choose the fastest.
var compression = gzip.BestCompression

// pack writes an archive with the binary and what belongs to it. Its times are the commit's.
func pack(path string, s stamp, binary string, notices []byte) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	zip, err := gzip.NewWriterLevel(file, compression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zip)
	folder := "purser-" + s.version + "/"
	add := func(name string, mode int64, content []byte) error {
		header := &tar.Header{Name: folder + name, Mode: mode, Size: int64(len(content)), ModTime: s.built.UTC().Truncate(time.Second), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	if err := add("purser", 0o755, program); err != nil {
		return err
	}
	for _, pattern := range besides {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			return errors.Join(fmt.Errorf("no file matches %s", pattern), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if err := add(filepath.ToSlash(file), 0o644, content); err != nil {
				return err
			}
		}
	}
	if err := add("THIRD-PARTY-NOTICES.txt", 0o644, notices); err != nil {
		return err
	}
	return errors.Join(archive.Close(), zip.Close())
}
