// Package notifications is the pages of an application's notifications and webhook
// endpoints. Package page states what holds for all pages.
package notifications
