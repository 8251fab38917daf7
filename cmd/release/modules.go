package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// module is a part of the binaries.
type module struct{ path, version, sum string }

// merge adds the modules of a binary, and the Go release that it was built with.
func merge(all []module, info *debug.BuildInfo) []module {
	found := []module{{path: "std", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		found = append(found, module{dep.Path, dep.Version, dep.Sum})
	}
	for _, m := range found {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b module) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version)) })
	return all
}

// purl is the module's package URL.
func (m module) purl() string { return "pkg:golang/" + m.path + "@" + m.version }

// billOfMaterials is a CycloneDX document.
func billOfMaterials(s stamp, modules []module) ([]byte, error) {
	type component struct {
		Type       string              `json:"type"`
		Ref        string              `json:"bom-ref"`
		Name       string              `json:"name"`
		Version    string              `json:"version"`
		PURL       string              `json:"purl"`
		Properties []map[string]string `json:"properties,omitempty"`
	}
	type dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
	root := component{Type: "application", Ref: "purser", Name: "purser", Version: s.version, PURL: "pkg:golang/purser@" + s.version,
		Properties: []map[string]string{{"name": "purser:commit", "value": s.commit}}}
	document := struct {
		Format   string `json:"bomFormat"`
		Spec     string `json:"specVersion"`
		Version  int    `json:"version"`
		Metadata struct {
			Timestamp string    `json:"timestamp"`
			Component component `json:"component"`
		} `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}{Format: "CycloneDX", Spec: "1.5", Version: 1}
	document.Metadata.Timestamp = s.built.UTC().Format("2006-01-02T15:04:05Z")
	document.Metadata.Component = root
	uses := dependency{Ref: root.Ref}
	for _, m := range modules {
		c := component{Type: "library", Ref: m.purl(), Name: m.path, Version: m.version, PURL: m.purl()}
		if m.sum != "" {
			c.Properties = []map[string]string{{"name": "go:sum", "value": m.sum}}
		}
		document.Components = append(document.Components, c)
		uses.DependsOn = append(uses.DependsOn, c.Ref)
	}
	document.Dependencies = []dependency{uses}
	text, err := json.MarshalIndent(document, "", "  ")
	return append(text, '\n'), err
}

// licence matches the files whose text has to go with the binary.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// assets have their licences beside them.
const assets = "static/*.LICENSE"

// thirdParty is the text of every licence and notice.
func thirdParty(ctx context.Context, modules []module) ([]byte, error) {
	var out bytes.Buffer
	fmt.Fprintln(&out, "Purser contains the following software of third parties.")
	section := func(name, path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "\n%s\n%s, %s\n\n%s\n", strings.Repeat("-", 80), name, filepath.Base(path), bytes.TrimSpace(text))
		return nil
	}
	for _, m := range modules {
		folder, err := sourceOf(ctx, m)
		if err != nil {
			return nil, err
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		found := false
		for _, entry := range entries {
			if entry.Type().IsRegular() && licence.MatchString(entry.Name()) {
				found = true
				if err := section(strings.TrimSpace(m.path+" "+m.version), filepath.Join(folder, entry.Name())); err != nil {
					return nil, err
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("%s has no licence file in %s", m.path, folder)
		}
	}
	files, err := filepath.Glob(assets)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if err := section(strings.TrimSuffix(filepath.Base(file), ".LICENSE"), file); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// sourceOf is the folder of a module, or of Go itself.
func sourceOf(ctx context.Context, m module) (string, error) {
	args := []string{"list", "-m", "-f", "{{.Dir}}", m.path}
	if m.path == "std" {
		args = []string{"env", "GOROOT"}
	}
	out, err := exec.CommandContext(ctx, "go", args...).Output()
	folder := strings.TrimSpace(string(out))
	if err != nil || folder == "" {
		return "", fmt.Errorf("finding the source of %s: %w", m.path, err)
	}
	return folder, nil
}
