package catalog

import (
	"strconv"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	catalogpage "purser/views/page/catalog"
	"purser/web/site"
)

func (s *Pages) credits(req *site.Request, part store.Page) (site.Response, error) {
	list, more, err := req.Tenant().Credits(req.Context, part)
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(catalogpage.Credits(catalogpage.List[metering.Credit]{
		Frame: req.Frame("Credits", "credits"), Base: req.AppPath("credits"), Items: list, MayEdit: req.May(tenancy.CreditsWrite), Copy: copyPath(req),
		Pages: site.Pages(req.AppPath("credits"), ids.Credit, part, list, more, func(c metering.Credit) ids.ID { return c.ID }),
	})), nil
}

func (s *Pages) newCredit(req *site.Request) (site.Response, error) {
	return site.Show(creditForm(req, catalogpage.CreditForm{New: true})), nil
}

func (s *Pages) createCredit(req *site.Request) (site.Response, error) {
	f := req.Form
	credit := metering.Credit{
		ID: ids.New(), Key: f.CatalogKey("key"), Name: f.CatalogName("name"), Unit: f.CatalogUnit("unit"), CreatedAt: req.Site.Now(),
	}
	if f.OK() {
		credit, err := metering.NewCredit(credit)
		if err == nil {
			err = req.Tenant().CreateCredit(req.Context, credit)
		}
		f.Check("key", err)
	}
	if !f.OK() {
		form := catalogpage.CreditForm{New: true, Key: f.Text("key"), Name: f.Text("name"), Unit: f.Text("unit")}
		form.Problems = f.Problems
		return site.Invalid(creditForm(req, form)), nil
	}
	return req.Done(req.AppPath("credits"), "Credit "+credit.Key+" created.")
}

func (s *Pages) editCredit(req *site.Request, credit metering.Credit) (site.Response, error) {
	return site.Show(creditForm(req, creditValues(credit))), nil
}

func (s *Pages) updateCredit(req *site.Request, stored metering.Credit) (site.Response, error) {
	f := req.Form
	revision, err := f.Revision()
	if err != nil {
		return site.Response{}, err
	}
	patch := metering.CreditPatch{ExpectedRevision: &revision, Name: f.Edited("name", stored.Name, f.CatalogName), Unit: f.Edited("unit", stored.Unit, f.CatalogUnit)}
	typed := catalogpage.CreditForm{Stored: stored, Key: stored.Key, Name: f.Text("name"), Unit: f.Text("unit"), Revision: f.Raw("revision")}
	if f.OK() {
		_, err := req.Tenant().UpdateCredit(req.Context, stored.Key, patch)
		if fault.Is(err, fault.RevisionConflict) {
			return creditConflict(req, typed)
		}
		f.Check("", err)
	}
	if !f.OK() {
		typed.Problems = f.Problems
		return site.Invalid(creditForm(req, typed)), nil
	}
	return req.Done(req.AppPath("credits"), "Credit "+stored.Key+" saved.")
}

// creditConflict shows the submitted values beside those stored in the meantime, with
// the current revision.
func creditConflict(req *site.Request, yours catalogpage.CreditForm) (site.Response, error) {
	credit, err := pathCredit(req)
	if err != nil {
		return site.Response{}, err
	}
	theirs := creditValues(credit)
	yours.Stored, yours.Revision = credit, theirs.Revision
	yours.Clash = &component.Clash{Rows: []component.Difference{
		{Label: "Name", Yours: yours.Name, Theirs: theirs.Name},
		{Label: "Unit", Yours: yours.Unit, Theirs: theirs.Unit},
	}}
	return site.Conflict(creditForm(req, yours)), nil
}

func pathCredit(req *site.Request) (metering.Credit, error) {
	return site.AtKey(req, req.Tenant().Credit)
}

func creditValues(c metering.Credit) catalogpage.CreditForm {
	return catalogpage.CreditForm{Stored: c, Key: c.Key, Name: c.Name, Unit: c.Unit, Revision: strconv.FormatInt(c.Revision, 10)}
}

func creditForm(req *site.Request, form catalogpage.CreditForm) templ.Component {
	title := form.Stored.Name
	if form.New {
		title = "New credit"
	}
	form.Frame, form.Base, form.ReadOnly = req.Frame(title, "credits"), req.AppPath("credits"), !req.May(tenancy.CreditsWrite)
	return catalogpage.Credit(form)
}
