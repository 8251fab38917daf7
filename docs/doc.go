// Package docs is what Purser says of itself: the guides beside this file, and
// the reference that the OpenAPI document holds.
//
// What it is: readers. Markdown becomes blocks that a page can show, and the
// OpenAPI document becomes groups of operations with their fields.
//
// What always holds: the guides are embedded, so a server and its guides are of
// one version; nothing of a guide reaches a page as raw HTML; a link that leads
// nowhere on the site is an error, not a dead end.
//
// What it is not: a page. It gives text and structure; views show them.
package docs
