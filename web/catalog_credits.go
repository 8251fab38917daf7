package web

import (
	"strconv"

	"github.com/a-h/templ"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/tenancy"
	"purser/views/component"
	"purser/views/page"
)

func (s *Site) credits(v *visit) (answer, error) {
	part, err := v.page(ids.Credit)
	if err != nil {
		return answer{}, err
	}
	list, more, err := v.tenant().Credits(v.context, part)
	if err != nil {
		return answer{}, err
	}
	return show(page.Credits(page.CreditList{
		Frame: v.frame("Credits", "credits"), Base: v.appPath("credits"), Credits: list, MayEdit: v.may(tenancy.CreditsWrite),
		Pages: pages(v.appPath("credits"), ids.Credit, part, list, more, func(c metering.Credit) ids.ID { return c.ID }),
	})), nil
}

func (s *Site) newCredit(v *visit) (answer, error) {
	return show(v.creditForm(page.CreditForm{New: true})), nil
}

func (s *Site) createCredit(v *visit) (answer, error) {
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	credit := metering.NewCredit(ids.New(), f.catalogKey("key"), f.catalogName("name"), f.catalogUnit("unit"), v.site.now())
	if f.ok() {
		if err := f.check("key", v.tenant().CreateCredit(v.context, credit)); err != nil {
			return answer{}, err
		}
	}
	if !f.ok() {
		form := page.CreditForm{New: true, Key: f.text("key"), Name: f.text("name"), Unit: f.text("unit")}
		form.Problems = f.problems
		return invalid(v.creditForm(form)), nil
	}
	return v.done(v.appPath("credits"), "Credit "+credit.Key+" created.")
}

func (s *Site) editCredit(v *visit) (answer, error) {
	credit, err := v.credit()
	if err != nil {
		return answer{}, err
	}
	return show(v.creditForm(creditValues(credit))), nil
}

func (s *Site) updateCredit(v *visit) (answer, error) {
	stored, err := v.credit()
	if err != nil {
		return answer{}, err
	}
	f, err := v.form()
	if err != nil {
		return answer{}, err
	}
	revision, err := f.revision()
	if err != nil {
		return answer{}, err
	}
	patch := metering.CreditPatch{ExpectedRevision: &revision, Name: new(f.catalogName("name")), Unit: new(f.catalogUnit("unit"))}
	typed := page.CreditForm{Stored: stored, Key: stored.Key, Name: f.text("name"), Unit: f.text("unit"), Revision: f.raw("revision")}
	if f.ok() {
		_, err := v.tenant().UpdateCredit(v.context, stored.Key, patch)
		if fault.Is(err, fault.RevisionConflict) {
			return v.creditConflict(typed)
		}
		if err := f.check("", err); err != nil {
			return answer{}, err
		}
	}
	if !f.ok() {
		typed.Problems = f.problems
		return invalid(v.creditForm(typed)), nil
	}
	return v.done(v.appPath("credits"), "Credit "+stored.Key+" saved.")
}

// creditConflict shows one's own values beside those that were stored meanwhile,
// and offers them for the revision that is now current.
func (v *visit) creditConflict(yours page.CreditForm) (answer, error) {
	credit, err := v.credit()
	if err != nil {
		return answer{}, err
	}
	theirs := creditValues(credit)
	yours.Stored, yours.Revision = credit, theirs.Revision
	yours.Clash = &component.Clash{Rows: []component.Difference{
		{Label: "Name", Yours: yours.Name, Theirs: theirs.Name},
		{Label: "Unit", Yours: yours.Unit, Theirs: theirs.Unit},
	}}
	return conflict(v.creditForm(yours)), nil
}

func (v *visit) credit() (metering.Credit, error) {
	key, err := v.catalogKey()
	if err != nil {
		return metering.Credit{}, err
	}
	return v.tenant().Credit(v.context, key)
}

func creditValues(c metering.Credit) page.CreditForm {
	return page.CreditForm{Stored: c, Key: c.Key, Name: c.Name, Unit: c.Unit, Revision: strconv.FormatInt(c.Revision, 10)}
}

func (v *visit) creditForm(form page.CreditForm) templ.Component {
	title := form.Stored.Name
	if form.New {
		title = "New credit"
	}
	form.Frame, form.Base, form.ReadOnly = v.frame(title, "credits"), v.appPath("credits"), !v.may(tenancy.CreditsWrite)
	return page.Credit(form)
}
