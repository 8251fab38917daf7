// Package docs is the pages of the documentation: guides, the API reference and the
// error codes. Package page states what holds for all pages.
package docs
