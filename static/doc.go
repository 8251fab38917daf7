// Package static holds what browsers load beside a page: the stylesheet, the
// scripts, the fonts and the mark.
//
// What it is: files embedded in the binary, each served under an address that
// carries a hash of its content, so there is no build step and no release in
// which a browser pairs a new page with an old stylesheet.
//
// What always holds: URL gives an address that Handler answers; an address
// answers with the same bytes for ever, so it may be cached for ever; an
// address that URL never gave is 404, folders included.
//
// htmx.min.js is htmx 2.0.11 as published on npm, unchanged; its licence lies
// beside it. The pages load it where parts of them are exchanged. inter.woff2 and
// jetbrains-mono.woff2 are subsets of Inter and JetBrains Mono, written by fonts.sh;
// the licences are beside them too.
//
// What it is not: a file server. Nothing is read from disk at run time, and a
// file that is not listed in this package cannot be reached.
package static
