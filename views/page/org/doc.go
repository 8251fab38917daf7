// Package org is the pages of an organization: its applications, members, invitations,
// settings and audit log. Package page states what holds for all pages.
package org
