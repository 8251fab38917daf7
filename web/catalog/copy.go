package catalog

import (
	"slices"
	"strings"

	"purser/billing"
	"purser/fault"
	"purser/ids"
	"purser/tenancy"
	"purser/views/component"
	catalogpage "purser/views/page/catalog"
	orgpage "purser/views/page/org"
	"purser/web/site"
)

// copyPath links to the copy of a test catalog, for members who may copy it.
func copyPath(req *site.Request) string {
	if req.App.Live || !mayCopy(req) {
		return ""
	}
	return req.AppPath("catalog", "copy")
}

func mayCopy(req *site.Request) bool {
	return requireReading(req) == nil && req.May(tenancy.CreditsWrite) && req.May(tenancy.FeaturesWrite) && req.May(tenancy.PlansWrite)
}

// requireReading refuses a member who may not read a whole catalog. A member has the same
// permissions in each application of the organization.
func requireReading(req *site.Request) error {
	for _, p := range []tenancy.Permission{tenancy.CreditsRead, tenancy.FeaturesRead, tenancy.PlansRead} {
		if err := req.Require(p); err != nil {
			return err
		}
	}
	return nil
}

// copyNeeds tells a member who may change plans only.
const copyNeeds = "Copying a catalog needs the permissions to read and write credits, features and plans. Ask an owner or admin for them."

func (s *Pages) copyPage(req *site.Request) (site.Response, error) {
	view, _, err := copyView(req, req.Query("to"))
	if !mayCopy(req) {
		view.Problems = []component.Problem{{Message: copyNeeds}}
	}
	return site.Show(catalogpage.CopyPage(view)), err
}

// copyView compares the application's catalog with the target's, which requires reading both.
// Without a target it only lists those there are, as the navigation does for every member.
func copyView(req *site.Request, slug string) (view catalogpage.Copy, target tenancy.Application, err error) {
	if req.App.Live {
		return view, target, fault.New(fault.PathNotFound)
	}
	view = catalogpage.Copy{Frame: req.Frame("Copy catalog to live", "plans"), Path: req.AppPath("catalog", "copy"), Back: req.AppPath("plans")}
	if req.May(tenancy.AppsWrite) {
		view.New = req.OrgPath("a", "new")
	}
	for _, app := range req.Apps {
		if !app.Live || app.IsArchived() {
			continue
		}
		view.Targets = append(view.Targets, component.Option{Value: app.Slug, Text: app.Name})
		if app.Slug == slug {
			target = app
		}
	}
	if slug == "" {
		return view, target, nil
	}
	if target.ID.IsZero() {
		return view, target, fault.New(fault.PathNotFound)
	}
	if err := requireReading(req); err != nil {
		return view, target, err
	}
	source, err := req.Tenant().Catalog(req.Context)
	if err != nil {
		return view, target, err
	}
	stored, err := req.Site.Store.App(target.Scope()).Catalog(req.Context)
	if err != nil {
		return view, target, err
	}
	diff, err := stored.Compare(source.Draft(), billing.CatalogOptions{NewID: ids.New})
	if err != nil {
		return view, target, err
	}
	view.Target, view.Name, view.Version, view.Source = target.Slug, target.Name, stored.Version(), source.Version()
	view.Same, view.Blocked, view.Items = diff.Count(billing.CatalogNone), diff.Count(billing.CatalogBlocked), copyItems(diff)
	return view, target, nil
}

// copyItems are the changes of a comparison. The price of a plan is one field for people.
func copyItems(diff billing.CatalogDiff) (items []catalogpage.CopyItem) {
	prices := map[string][2]billing.Price{}
	for _, p := range diff.Plans {
		prices[p.Key] = [2]billing.Price{p.Before.Price, p.After.Price}
	}
	for _, change := range diff.Changes() {
		if change.Action == billing.CatalogNone {
			continue
		}
		item := catalogpage.CopyItem{Kind: change.Kind, Key: change.Key, Action: change.Action}
		if change.Fault != nil {
			item.Reason = change.Fault.Message
		}
		for _, f := range change.Fields {
			if change.Kind == billing.CatalogPlan && (f.Name == "amountCents" || f.Name == "currency") {
				was, is := prices[change.Key][0], prices[change.Key][1]
				f = billing.FieldChange{Name: "price", Before: moneyOrNone(was, change.Action), After: component.MoneyText(is.AmountCents, is.Currency)}
			}
			if shown := (orgpage.FieldChange{Name: f.Name, Before: f.Before, After: f.After}); !slices.Contains(item.Changes, shown) {
				item.Changes = append(item.Changes, shown)
			}
		}
		items = append(items, item)
	}
	return items
}

func moneyOrNone(p billing.Price, action billing.CatalogAction) string {
	if action == billing.CatalogCreate {
		return ""
	}
	return component.MoneyText(p.AmountCents, p.Currency)
}

// copyCatalog applies the catalog that the page compared. If either application has changed
// since then, which the versions in the form tell, the comparison is shown again.
func (s *Pages) copyCatalog(req *site.Request) (site.Response, error) {
	f := req.Form
	view, target, err := copyView(req, f.Text("to"))
	if err != nil {
		return site.Response{}, err
	}
	if target.ID.IsZero() {
		return site.Response{}, fault.New(fault.PathNotFound)
	}
	if !strings.EqualFold(site.AsShown(f.Raw("confirm")), site.AsShown(target.Name)) {
		f.Fail("confirm", "Type the name of the live application: "+target.Name+".")
	}
	if !mayCopy(req) {
		f.Fail("", copyNeeds)
	}
	if f.OK() {
		source, err := req.Tenant().Catalog(req.Context)
		if err != nil {
			return site.Response{}, err
		}
		if f.Text("source") != source.Version() {
			f.Fail("", "This application's catalog changed since you opened the page. Review the changes again.")
		} else {
			diff, _, err := s.Store.App(target.Scope()).By(req.Actor()).ApplyCatalog(req.Context, f.Text("version"), s.Now(), req.App.Name, func(stored billing.CatalogState) (billing.CatalogDiff, error) {
				return stored.Compare(source.Draft(), billing.CatalogOptions{NewID: ids.New, Now: s.Now()})
			})
			f.Check("", err)
			if f.OK() {
				s.Cashier.Wake(target.Scope())
				return req.Done(req.OrgPath("a", target.Slug, "plans"), "Copied from "+req.App.Name+": "+
					component.Counted(int64(diff.Count(billing.CatalogCreate)), "item", "items")+" created, "+
					component.Counted(int64(diff.Count(billing.CatalogUpdate)), "item", "items")+" updated.")
			}
		}
	}
	view.Problems = f.Problems
	return site.Invalid(catalogpage.CopyPage(view)), nil
}
