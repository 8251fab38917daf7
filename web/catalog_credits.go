package web

import (
	"strconv"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/tenancy"
	"purser/views/component"
	catalogpage "purser/views/page/catalog"
)

func (s *Site) credits(req *request) (response, error) {
	part, err := req.before(ids.Credit)
	if err != nil {
		return response{}, err
	}
	list, more, err := req.tenant().Credits(req.context, part)
	if err != nil {
		return response{}, err
	}
	return show(catalogpage.Credits(catalogpage.CreditList{
		Frame: req.frame("Credits", "credits"), Base: req.appPath("credits"), Credits: list, MayEdit: req.may(tenancy.CreditsWrite), Copy: copyPath(req),
		Pages: pages(req.appPath("credits"), ids.Credit, part, list, more, func(c metering.Credit) ids.ID { return c.ID }),
	})), nil
}

func (s *Site) newCredit(req *request) (response, error) {
	return show(creditForm(req, catalogpage.CreditForm{New: true})), nil
}

func (s *Site) createCredit(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	credit := metering.Credit{
		ID: ids.New(), Key: f.catalogKey("key"), Name: f.catalogName("name"), Unit: f.catalogUnit("unit"), CreatedAt: req.site.now(),
	}
	if f.ok() {
		credit, err := metering.NewCredit(credit)
		if err == nil {
			err = req.tenant().CreateCredit(req.context, credit)
		}
		if err := f.check("key", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		form := catalogpage.CreditForm{New: true, Key: f.text("key"), Name: f.text("name"), Unit: f.text("unit")}
		form.Problems = f.problems
		return invalid(creditForm(req, form)), nil
	}
	return req.done(req.appPath("credits"), "Credit "+credit.Key+" created.")
}

func (s *Site) editCredit(req *request) (response, error) {
	credit, err := pathCredit(req)
	if err != nil {
		return response{}, err
	}
	return show(creditForm(req, creditValues(credit))), nil
}

func (s *Site) updateCredit(req *request) (response, error) {
	stored, err := pathCredit(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	revision, err := f.revision()
	if err != nil {
		return response{}, err
	}
	patch := metering.CreditPatch{ExpectedRevision: &revision, Name: f.edited("name", stored.Name, f.catalogName), Unit: f.edited("unit", stored.Unit, f.catalogUnit)}
	typed := catalogpage.CreditForm{Stored: stored, Key: stored.Key, Name: f.text("name"), Unit: f.text("unit"), Revision: f.raw("revision")}
	if f.ok() {
		_, err := req.tenant().UpdateCredit(req.context, stored.Key, patch)
		if fault.Is(err, fault.RevisionConflict) {
			return creditConflict(req, typed)
		}
		if err := f.check("", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		typed.Problems = f.problems
		return invalid(creditForm(req, typed)), nil
	}
	return req.done(req.appPath("credits"), "Credit "+stored.Key+" saved.")
}

// creditConflict shows the submitted values beside those stored in the meantime, with
// the current revision.
func creditConflict(req *request, yours catalogpage.CreditForm) (response, error) {
	credit, err := pathCredit(req)
	if err != nil {
		return response{}, err
	}
	theirs := creditValues(credit)
	yours.Stored, yours.Revision = credit, theirs.Revision
	yours.Clash = &component.Clash{Rows: []component.Difference{
		{Label: "Name", Yours: yours.Name, Theirs: theirs.Name},
		{Label: "Unit", Yours: yours.Unit, Theirs: theirs.Unit},
	}}
	return conflict(creditForm(req, yours)), nil
}

func pathCredit(req *request) (metering.Credit, error) {
	key, err := req.catalogKey()
	if err != nil {
		return metering.Credit{}, err
	}
	return req.tenant().Credit(req.context, key)
}

func creditValues(c metering.Credit) catalogpage.CreditForm {
	return catalogpage.CreditForm{Stored: c, Key: c.Key, Name: c.Name, Unit: c.Unit, Revision: strconv.FormatInt(c.Revision, 10)}
}

func creditForm(req *request, form catalogpage.CreditForm) templ.Component {
	title := form.Stored.Name
	if form.New {
		title = "New credit"
	}
	form.Frame, form.Base, form.ReadOnly = req.frame(title, "credits"), req.appPath("credits"), !req.may(tenancy.CreditsWrite)
	return catalogpage.Credit(form)
}
