package site

import (
	"purser/tenancy"
	"purser/views/component"
	"purser/views/layout"
)

// archivedAt is when the application, or else the organization, of the path was archived;
// 0 for active ones.
func (req *Request) archivedAt() int64 {
	if req.App.IsArchived() {
		return req.App.ArchivedAt
	}
	return req.Org.ArchivedAt
}

// permissions are the member's, and in what is archived only those that change nothing
// of it. Members and settings stay, to take access away and to restore.
func (req *Request) permissions() tenancy.Permissions {
	held := req.Member.Permissions()
	if req.archivedAt() == 0 {
		return held
	}
	var kept tenancy.Permissions
	for p := range held.Each() {
		if p.Reads() || p == tenancy.SettingsWrite || p == tenancy.MembersWrite || p == tenancy.OrganizationWrite {
			kept = kept.With(p)
		}
	}
	return kept
}

// archived describes the strip above the pages of what is archived.
func (req *Request) archived() layout.Archived {
	a := layout.Archived{At: req.archivedAt(), Noun: "application"}
	switch {
	case a.At == 0:
	case req.Org.IsArchived():
		a.Noun = "organization"
		if req.Member.May(tenancy.OrganizationWrite) {
			a.Restore = req.OrgPath("settings", "restore")
		}
	case req.Member.May(tenancy.AppsWrite):
		a.Restore = req.AppPath("settings", "restore")
	}
	return a
}

// ArchiveFilter is the choice between active and archived ones in the query.
func (req *Request) ArchiveFilter(path string) component.ArchiveFilter {
	return component.ArchiveFilter{Path: path, On: req.Query("show") == "archived"}
}
