// Package settings is the pages of an application's settings and its payment provider.
// Package page states what holds for all pages.
package settings
