// Package purser is the module's root: it embeds what lies beside it, so that the
// documentation can show it.
package purser

import _ "embed"

// Changelog is CHANGELOG.md.
//
//go:embed CHANGELOG.md
var Changelog string
