// Package keys is the pages of an application's API keys. Package page states what holds
// for all pages.
package keys
