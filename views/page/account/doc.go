// Package account is the pages of a person: the start page, setup, signing in, accepting
// an invitation, and the account with its sessions and two-factor authentication.
// Package page states what holds for all pages.
package account
