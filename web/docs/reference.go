package docs

import (
	"net/http"
	"slices"

	"purser/docs"
	"purser/fault"
	"purser/views/layout"
	docspage "purser/views/page/docs"
	"purser/web/site"
)

func (s *Pages) docsReference(req *site.Request) (site.Response, error) {
	reference, err := s.reference()
	if err != nil {
		return site.Response{}, err
	}
	frame, err := docsFrame(req, "API reference", "reference")
	if err != nil {
		return site.Response{}, err
	}
	frame.Nav = append(frame.Nav, referenceGroups(reference))
	return site.Show(docspage.ReferencePage(docspage.Reference{Frame: frame, Reference: reference})), nil
}

func (s *Pages) docsGroup(req *site.Request, slug string) (site.Response, error) {
	reference, err := s.reference()
	if err != nil {
		return site.Response{}, err
	}
	group, found := reference.FindGroup(slug)
	if !found {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	frame, err := docsFrame(req, group.Name, referencePrefix+group.Slug)
	if err != nil {
		return site.Response{}, err
	}
	for _, op := range group.Operations {
		frame.Contents = append(frame.Contents, layout.NavItem{Label: op.Summary, Href: "#" + op.ID})
	}
	frame.Nav = append(frame.Nav, referenceGroups(reference))
	examples, err := s.examples()
	if err != nil {
		return site.Response{}, err
	}
	language, remember := req.ExampleLanguage()
	return remember(site.Show(docspage.GroupPage(docspage.Group{Frame: frame, Group: group, Language: language, Variants: examples}))), nil
}

// docsWebhooks lists the types of notifications.
func (s *Pages) docsWebhooks(req *site.Request) (site.Response, error) {
	reference, err := s.reference()
	if err != nil {
		return site.Response{}, err
	}
	frame, err := docsFrame(req, "Notification types", "notifications")
	if err != nil {
		return site.Response{}, err
	}
	language, remember := req.ExampleLanguage()
	view := docspage.Webhooks{Webhooks: reference.Webhooks, Language: language.Receiving()}
	if view.Receiver, err = view.Language.Receiver(); err != nil {
		return site.Response{}, err
	}
	frame.Contents = []layout.NavItem{{Label: "Format", Href: "#format"}, {Label: "Check signatures", Href: "#signatures"}}
	for _, w := range reference.Webhooks {
		frame.Contents = append(frame.Contents, layout.NavItem{Label: w.Type, Href: "#" + w.Type})
	}
	view.Frame = frame
	return remember(site.Show(docspage.WebhooksPage(view))), nil
}

const referencePrefix = "/docs/reference/"

func referenceGroups(reference *docs.Reference) layout.NavGroup {
	groups := layout.NavGroup{Title: "API reference"}
	for _, group := range reference.Groups {
		path := referencePrefix + group.Slug
		groups.Items = append(groups.Items, layout.NavItem{Key: path, Label: group.Name, Href: path})
	}
	return groups
}

func docsStatus(kind fault.Kind) docspage.Status {
	status := kind.Status()
	return docspage.Status{Status: status, Text: http.StatusText(status)}
}

func (s *Pages) docsErrors(req *site.Request) (site.Response, error) {
	frame, err := docsFrame(req, "Error codes", "error-codes")
	if err != nil {
		return site.Response{}, err
	}
	var statuses []docspage.Status
	for _, code := range fault.Codes() {
		f := fault.New(code)
		status := docsStatus(f.Kind())
		at := slices.IndexFunc(statuses, func(s docspage.Status) bool { return s.Status == status.Status })
		if at < 0 {
			at = len(statuses)
			statuses = append(statuses, status)
		}
		statuses[at].Codes = append(statuses[at].Codes, f)
	}
	slices.SortFunc(statuses, func(a, b docspage.Status) int { return a.Status - b.Status })
	for _, status := range statuses {
		frame.Contents = append(frame.Contents, layout.NavItem{Label: status.Title(), Href: "#" + status.ID()})
	}
	return site.Show(docspage.ErrorsPage(docspage.Errors{Frame: frame, Statuses: statuses})), nil
}

func (s *Pages) docsError(req *site.Request, name string) (site.Response, error) {
	code := fault.Code(name)
	if !fault.Known(code) {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	frame, err := docsFrame(req, name, "error-codes")
	if err != nil {
		return site.Response{}, err
	}
	f := fault.New(code)
	return site.Show(docspage.ErrorPage(docspage.Error{Frame: frame, Fault: f, Status: docsStatus(f.Kind())})), nil
}
