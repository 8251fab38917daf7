package web

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
)

// copyPath links to the copy of a test catalog, for members who may change all of it.
func copyPath(req *request) string {
	if req.app.Live || !mayCopy(req) {
		return ""
	}
	return req.appPath("catalog", "copy")
}

func mayCopy(req *request) bool {
	return req.may(tenancy.CreditsWrite) && req.may(tenancy.FeaturesWrite) && req.may(tenancy.PlansWrite)
}

// copyNeeds tells a member who may change plans only.
const copyNeeds = "Copying a catalog needs the permissions credits:write, features:write and plans:write. Ask an owner or admin for them."

func (s *Site) copyPage(req *request) (response, error) {
	view, _, err := copyView(req, req.query("to"))
	if !mayCopy(req) {
		view.Problems = []component.Problem{{Message: copyNeeds}}
	}
	return show(catalogpage.CopyPage(view)), err
}

// copyView compares the application's catalog with the target's. Without a target it only
// lists those there are.
func copyView(req *request, slug string) (view catalogpage.Copy, target tenancy.Application, err error) {
	if req.app.Live {
		return view, target, fault.New(fault.PathNotFound)
	}
	view = catalogpage.Copy{Frame: req.frame("Copy catalog to live", "plans"), Path: req.appPath("catalog", "copy"), Back: req.appPath("plans")}
	for _, app := range req.apps {
		if !app.Live {
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
	source, err := req.tenant().Catalog(req.context)
	if err != nil {
		return view, target, err
	}
	stored, err := req.site.store.App(target.Scope()).Catalog(req.context)
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
func (s *Site) copyCatalog(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	view, target, err := copyView(req, f.text("to"))
	if err != nil {
		return response{}, err
	}
	if target.ID.IsZero() {
		return response{}, fault.New(fault.PathNotFound)
	}
	if !strings.EqualFold(f.text("confirm"), target.Name) {
		f.fail("confirm", "Type the name of the live application: "+target.Name+".")
	}
	if !mayCopy(req) {
		f.fail("", copyNeeds)
	}
	if f.ok() {
		source, err := req.tenant().Catalog(req.context)
		if err != nil {
			return response{}, err
		}
		if f.text("source") != source.Version() {
			f.fail("", "This application's catalog changed since you opened the page. Review the changes again.")
		} else {
			diff, _, err := s.store.App(target.Scope()).By(req.actor()).ApplyCatalog(req.context, f.text("version"), s.now(), req.app.Name, func(stored billing.CatalogState) (billing.CatalogDiff, error) {
				return stored.Compare(source.Draft(), billing.CatalogOptions{NewID: ids.New, Now: s.now()})
			})
			if err := f.check("", err); err != nil {
				return response{}, err
			}
			if f.ok() {
				if s.cashier != nil {
					s.cashier.Wake(target.Scope())
				}
				return req.done(req.orgPath("a", target.Slug, "plans"), "Copied from "+req.app.Name+": "+
					component.Counted(int64(diff.Count(billing.CatalogCreate)), "item", "items")+" created, "+
					component.Counted(int64(diff.Count(billing.CatalogUpdate)), "item", "items")+" updated.")
			}
		}
	}
	view.Problems = f.problems
	return invalid(catalogpage.CopyPage(view)), nil
}
