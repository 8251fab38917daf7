package web

import (
	"strconv"

	"purser/fault"
	"purser/ids"
	"purser/metering"
	"purser/store"
	"purser/tenancy"
	"purser/views/component"
	settingspage "purser/views/page/settings"
)

func (s *Site) alertRules(req *request) (response, error) {
	rules, err := req.tenant().AlertRules(req.context)
	if err != nil {
		return response{}, err
	}
	return show(settingspage.AlertRules(settingspage.AlertRuleList{
		Frame: req.frame("Alerts", "alert-rules"), Base: req.appPath("settings", "alerts"), Rules: rules, MayEdit: req.may(tenancy.CreditsWrite),
		Webhooks: req.appPath("webhooks"),
	})), nil
}

// alertForm adds what every form of an alert shows: the credits or features to choose from.
func alertForm(req *request, form settingspage.AlertRuleForm) (settingspage.AlertRuleForm, error) {
	title := "New balance alert"
	if form.Kind == metering.AlertAllowance {
		title = "New allowance alert"
	}
	if !form.New {
		title = form.Key
	}
	form.Frame, form.Base, form.Title = req.frame(title, "alert-rules"), req.appPath("settings", "alerts"), title
	if form.Kind == metering.AlertAllowance {
		features, _, err := req.tenant().Features(req.context, store.Page{Limit: maxOptions})
		for _, f := range features {
			form.Watched = append(form.Watched, component.Option{Value: f.Key, Text: f.Name + " (" + f.Key + ")"})
		}
		return form, err
	}
	credits, _, err := req.tenant().Credits(req.context, store.Page{Limit: maxOptions})
	for _, c := range credits {
		form.Watched = append(form.Watched, component.Option{Value: c.Key, Text: c.Name + " (" + c.Key + ")"})
	}
	return form, err
}

func (s *Site) newAlertRule(req *request) (response, error) {
	form := settingspage.AlertRuleForm{
		New: true, Kind: metering.AlertBalance, Thresholds: make([]string, metering.MaxAlertThresholds),
		Rearm: strconv.Itoa(metering.DefaultRearmPercent), Quiet: strconv.Itoa(metering.DefaultQuietHours), Identity: req.query("identity"),
	}
	if req.query("kind") == string(metering.AlertAllowance) {
		form.Kind = metering.AlertAllowance
	}
	form, err := alertForm(req, form)
	return show(settingspage.AlertRule(form)), err
}

func (s *Site) createAlertRule(req *request) (response, error) {
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	kind := choice(f, "kind", metering.AlertBalance, metering.AlertAllowance)
	if !f.ok() {
		return response{}, fault.Newf(fault.InvalidRequest, "The form data was invalid. Open it again from the list of alerts.")
	}
	key := f.catalogKey("key")
	if f.ok() {
		_, err := req.tenant().AlertRule(req.context, key)
		switch {
		case err == nil:
			f.fail("key", "There is already an alert with this key. Choose another one, or edit that alert.")
		case !fault.Is(err, fault.AlertRuleNotFound):
			return response{}, err
		}
	}
	return putAlertRule(req, f, settingspage.AlertRuleForm{New: true, Kind: kind, Key: key})
}

// pathAlertRule is the rule of the path.
func pathAlertRule(req *request) (metering.AlertRule, error) {
	key, err := req.catalogKey()
	if err != nil {
		return metering.AlertRule{}, err
	}
	return req.tenant().AlertRule(req.context, key)
}

func (s *Site) editAlertRule(req *request) (response, error) {
	rule, err := pathAlertRule(req)
	if err != nil {
		return response{}, err
	}
	form := settingspage.AlertRuleForm{
		Kind: rule.Kind, Key: rule.Key, Chosen: rule.CreditKey + rule.FeatureKey, Thresholds: make([]string, metering.MaxAlertThresholds),
		Rearm: strconv.FormatInt(rule.RearmPercent, 10), Quiet: strconv.FormatInt(rule.QuietHours, 10), Identity: rule.Identity, Stored: rule,
	}
	for i, amount := range rule.Thresholds {
		form.Thresholds[i] = amount.Credits()
	}
	for i, percent := range rule.Percents {
		form.Thresholds[i] = strconv.FormatInt(percent, 10)
	}
	form, err = alertForm(req, form)
	return show(settingspage.AlertRule(form)), err
}

func (s *Site) updateAlertRule(req *request) (response, error) {
	rule, err := pathAlertRule(req)
	if err != nil {
		return response{}, err
	}
	f, err := req.form()
	if err != nil {
		return response{}, err
	}
	return putAlertRule(req, f, settingspage.AlertRuleForm{Kind: rule.Kind, Key: rule.Key, Stored: rule})
}

// putAlertRule stores the rule of a form, or shows the form again.
func putAlertRule(req *request, f *form, form settingspage.AlertRuleForm) (response, error) {
	form, err := alertForm(req, form)
	if err != nil {
		return response{}, err
	}
	rule := alertRuleOf(req, f, form)
	if f.ok() {
		checked, err := metering.NewAlertRule(rule)
		if err == nil {
			_, err = req.tenant().PutAlertRule(req.context, checked)
		}
		if err := f.check("threshold-1", err); err != nil {
			return response{}, err
		}
	}
	if !f.ok() {
		form.Key, form.Chosen, form.Rearm, form.Quiet, form.Identity = rule.Key, f.text("watched"), f.text("rearm"), f.text("quiet"), f.text("identity")
		if form.New {
			form.Key = f.text("key")
		}
		for i := range metering.MaxAlertThresholds {
			form.Thresholds = append(form.Thresholds, f.text(thresholdField(i)))
		}
		form.Problems = f.problems
		return invalid(settingspage.AlertRule(form)), nil
	}
	return req.done(req.appPath("settings", "alerts"), "Alert "+rule.Key+" saved.")
}

func thresholdField(i int) string { return "threshold-" + strconv.Itoa(i+1) }

// alertRuleOf reads the form. Empty thresholds are left out.
func alertRuleOf(req *request, f *form, form settingspage.AlertRuleForm) metering.AlertRule {
	rule := metering.AlertRule{ID: ids.New(), Key: form.Key, Kind: form.Kind, CreatedAt: req.now()}
	offered := make([]string, len(form.Watched))
	for i, option := range form.Watched {
		offered[i] = option.Value
	}
	watched := choice(f, "watched", offered...)
	for i := range metering.MaxAlertThresholds {
		field := thresholdField(i)
		switch {
		case f.text(field) == "" && i > 0:
		case form.Kind == metering.AlertAllowance:
			rule.Percents = append(rule.Percents, readBetween(f, field, 1, 100))
		default:
			rule.Thresholds = append(rule.Thresholds, f.credits(field))
		}
	}
	if form.Kind == metering.AlertAllowance {
		rule.FeatureKey = watched
		return rule
	}
	rule.CreditKey, rule.Identity = watched, f.text("identity")
	rule.RearmPercent = readBetween(f, "rearm", metering.MinRearmPercent, metering.MaxRearmPercent)
	rule.QuietHours = readBetween(f, "quiet", 0, metering.MaxQuietHours)
	if rule.Identity != "" {
		if _, err := metering.ParseIdentity(rule.Identity); err != nil {
			f.fail("identity", "Enter an identity of up to "+strconv.Itoa(metering.MaxIdentityLength)+" characters.")
		}
	}
	return rule
}

// readBetween parses a whole number of a range.
func readBetween(f *form, field string, least, most int64) int64 {
	n, err := strconv.ParseInt(f.text(field), 10, 64)
	if err != nil || n < least || n > most {
		f.fail(field, "Enter a whole number from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10)+".")
	}
	return n
}

func (s *Site) deleteAlertRule(req *request) (response, error) {
	rule, err := pathAlertRule(req)
	if err != nil {
		return response{}, err
	}
	if _, err := req.tenant().DeleteAlertRule(req.context, rule.Key); err != nil {
		return response{}, err
	}
	return req.done(req.appPath("settings", "alerts"), "Alert "+rule.Key+" deleted.")
}
