package developers

import (
	"slices"
	"strconv"
	"strings"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/tenancy"
	"purser/views/component"
	settingspage "purser/views/page/settings"
	"purser/web/site"
)

func (s *Pages) alertRules(req *site.Request) (site.Response, error) {
	rules, err := req.Tenant().AlertRules(req.Context)
	if err != nil {
		return site.Response{}, err
	}
	return site.Show(settingspage.AlertRules(settingspage.AlertRuleList{
		Frame: req.Frame("Alerts", "alert-rules"), Base: req.AppPath("settings", "alerts"), Rules: rules, MayEdit: req.May(tenancy.CreditsWrite),
		Webhooks: req.LinkIfPermitted(tenancy.NotificationsRead, "webhooks"), ByMail: s.Mail != nil && req.May(tenancy.WalletsRead),
	})), nil
}

// alertForm adds what every form of an alert shows: the credits or features to choose from.
func alertForm(req *site.Request, form settingspage.AlertRuleForm) (settingspage.AlertRuleForm, error) {
	title := "New balance alert"
	if form.Kind == metering.AlertAllowance {
		title = "New allowance alert"
	}
	if !form.New {
		title = form.Key
	}
	form.Frame, form.Base, form.Title = req.Frame(title, "alert-rules"), req.AppPath("settings", "alerts"), title
	watched := req.CreditOptions
	if form.Kind == metering.AlertAllowance {
		watched = req.FeatureOptions
	}
	var err error
	form.Watched, err = watched()
	return form, err
}

func (s *Pages) newAlertRule(req *site.Request) (site.Response, error) {
	form := settingspage.AlertRuleForm{
		New: true, Kind: metering.AlertBalance, Thresholds: make([]string, metering.MaxAlertThresholds),
		Rearm: strconv.Itoa(metering.DefaultRearmPercent), Quiet: strconv.Itoa(metering.DefaultQuietHours), Identity: req.Query("identity"),
	}
	if req.Query("kind") == string(metering.AlertAllowance) {
		form.Kind = metering.AlertAllowance
	}
	form, err := alertForm(req, form)
	return site.Show(settingspage.AlertRule(form)), err
}

func (s *Pages) createAlertRule(req *site.Request) (site.Response, error) {
	f := req.Form
	kind := site.Choice(f, "kind", metering.AlertBalance, metering.AlertAllowance)
	if !f.OK() {
		return site.Response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Open it again from the list of alerts.")
	}
	return putAlertRule(req, f, settingspage.AlertRuleForm{New: true, Kind: kind, Key: f.CatalogKey("key")})
}

func pathAlertRule(req *site.Request) (metering.AlertRule, error) {
	return site.AtKey(req, req.Tenant().AlertRule)
}

// storedAlert is the form of a rule as it is stored.
func storedAlert(rule metering.AlertRule) settingspage.AlertRuleForm {
	form := settingspage.AlertRuleForm{
		Kind: rule.Kind, Key: rule.Key, Chosen: rule.CreditKey + rule.FeatureKey, Thresholds: make([]string, metering.MaxAlertThresholds), Version: rule.Version(),
		Rearm: strconv.FormatInt(rule.RearmPercent, 10), Quiet: strconv.FormatInt(rule.QuietHours, 10), Identity: rule.Identity, Stored: rule,
	}
	for i, amount := range rule.Thresholds {
		form.Thresholds[i] = amount.Credits()
	}
	for i, percent := range rule.Percents {
		form.Thresholds[i] = strconv.FormatInt(percent, 10)
	}
	return form
}

func (s *Pages) editAlertRule(req *site.Request, rule metering.AlertRule) (site.Response, error) {
	form, err := alertForm(req, storedAlert(rule))
	return site.Show(settingspage.AlertRule(form)), err
}

func (s *Pages) updateAlertRule(req *site.Request, rule metering.AlertRule) (site.Response, error) {
	f := req.Form
	return putAlertRule(req, f, settingspage.AlertRuleForm{Kind: rule.Kind, Key: rule.Key, Stored: rule, Version: f.Text("version")})
}

// putAlertRule stores the rule of a form, or shows the form again.
func putAlertRule(req *site.Request, f *site.Form, form settingspage.AlertRuleForm) (site.Response, error) {
	form, err := alertForm(req, form)
	if err != nil {
		return site.Response{}, err
	}
	rule := alertRuleOf(req, f, form)
	if f.OK() {
		checked, err := metering.NewAlertRule(rule)
		if err == nil {
			_, err = req.Tenant().PutAlertRule(req.Context, checked, form.Version)
		}
		switch conflict := fault.Is(err, fault.RevisionConflict); {
		case conflict && form.New:
			f.Fail("key", "There is already an alert with this key. Choose another one, or edit that alert.")
			err = nil
		case conflict:
			return alertConflict(req, f, form)
		}
		f.Check("threshold-1", err)
	}
	if !f.OK() {
		if form.New {
			form.Key = f.Text("key")
		}
		return site.Invalid(settingspage.AlertRule(typedAlert(f, form))), nil
	}
	return req.Done(req.AppPath("settings", "alerts"), "Alert "+rule.Key+" saved.")
}

// typedAlert is the form as it was submitted.
func typedAlert(f *site.Form, form settingspage.AlertRuleForm) settingspage.AlertRuleForm {
	form.Chosen, form.Rearm, form.Quiet, form.Identity, form.Problems = f.Text("watched"), f.Text("rearm"), f.Text("quiet"), f.Raw("identity"), f.Problems
	for i := range metering.MaxAlertThresholds {
		form.Thresholds = append(form.Thresholds, f.Text(thresholdField(i)))
	}
	return form
}

// alertConflict shows the submitted values beside those stored in the meantime, with
// their version.
func alertConflict(req *site.Request, f *site.Form, form settingspage.AlertRuleForm) (site.Response, error) {
	rule, err := pathAlertRule(req)
	if err != nil {
		return site.Response{}, err
	}
	yours, theirs := typedAlert(f, form), storedAlert(rule)
	yours.Stored, yours.Version = rule, theirs.Version
	thresholds := func(list []string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(list), func(text string) bool { return text == "" }), ", ")
	}
	rows := []component.Difference{
		{Label: "Watches", Yours: yours.Chosen, Theirs: theirs.Chosen},
		{Label: "Thresholds", Yours: thresholds(yours.Thresholds), Theirs: thresholds(theirs.Thresholds)},
	}
	if rule.Kind == metering.AlertBalance {
		rows = append(rows, component.Difference{Label: "Re-arm at", Yours: yours.Rearm, Theirs: theirs.Rearm},
			component.Difference{Label: "Quiet for", Yours: yours.Quiet, Theirs: theirs.Quiet},
			component.Difference{Label: "Customer", Yours: yours.Identity, Theirs: theirs.Identity})
	}
	yours.Clash = &component.Clash{Rows: rows}
	return site.Conflict(settingspage.AlertRule(yours)), nil
}

func thresholdField(i int) string { return "threshold-" + strconv.Itoa(i+1) }

// alertRuleOf reads the form. Empty thresholds are left out.
func alertRuleOf(req *site.Request, f *site.Form, form settingspage.AlertRuleForm) metering.AlertRule {
	rule := metering.AlertRule{ID: ids.New(), Key: form.Key, Kind: form.Kind, CreatedAt: req.Now()}
	offered := make([]string, len(form.Watched))
	for i, option := range form.Watched {
		offered[i] = option.Value
	}
	watched := site.Choice(f, "watched", offered...)
	for i := range metering.MaxAlertThresholds {
		field := thresholdField(i)
		switch {
		case f.Text(field) == "" && i > 0:
		case form.Kind == metering.AlertAllowance:
			rule.Percents = append(rule.Percents, f.Between(field, 1, 100))
		default:
			rule.Thresholds = append(rule.Thresholds, f.Credits(field))
		}
	}
	if form.Kind == metering.AlertAllowance {
		rule.FeatureKey = watched
		return rule
	}
	rule.CreditKey, rule.Identity = watched, form.Stored.Identity
	if edited := f.Edited("identity", rule.Identity, f.Text); edited != nil {
		rule.Identity = *edited
	}
	rule.RearmPercent = f.Between("rearm", metering.MinRearmPercent, metering.MaxRearmPercent)
	rule.QuietHours = f.Between("quiet", 0, metering.MaxQuietHours)
	if rule.Identity != "" {
		if _, err := metering.ParseIdentity(rule.Identity); err != nil {
			f.Fail("identity", "Enter an identity of up to "+strconv.Itoa(metering.MaxIdentityLength)+" characters.")
		}
	}
	return rule
}

func (s *Pages) deleteAlertRule(req *site.Request, rule metering.AlertRule) (site.Response, error) {
	if _, err := req.Tenant().DeleteAlertRule(req.Context, rule.Key); err != nil {
		return site.Response{}, err
	}
	return req.Done(req.AppPath("settings", "alerts"), "Alert "+rule.Key+" deleted.")
}
