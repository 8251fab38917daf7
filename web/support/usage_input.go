package support

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"purser/fault"
	"purser/metering/rollup"
	"purser/store/rollups"
	"purser/views/component"
	"purser/web/site"
)

const (
	// maxDimensions is how many entities and properties the page offers, and
	// maxValues how many values of one of them it names.
	maxDimensions = 50
	maxValues     = 50
	// maxUsageRows is how many groups of all buckets a chart adds up. They are in memory.
	maxUsageRows = 50_000
)

// byCustomer groups usage by customer.
const byCustomer = "customer"

// usageFilters are the parameters of the usage page.
var usageFilters = []string{"range", "from", "to", "show", "by", "bucket", "credit", "feature", "identity", "compare", "zone"}

// The choices of the usage page. The first of each is the default.
var (
	usageRanges = []struct {
		key, label, before string
	}{
		{"30", "30 days", "in the previous 30 days"}, {"1", "Today", "all day yesterday"}, {"7", "7 days", "in the previous 7 days"},
		{"month", "This month", "in the previous period"}, {"last", "Last month", "in the month before"}, {"year", "12 months", "in the previous 12 months"},
	}
	usageShows       = []component.Option{{Value: "charged", Text: "Credits charged"}, {Value: "events", Text: "Events"}, {Value: "quantity", Text: "Quantity"}}
	usageBys         = []component.Option{{Value: "feature", Text: "Feature"}, {Value: byCustomer, Text: "Customer"}, {Value: "key", Text: "API key"}, {Value: "none", Text: "Nothing"}}
	usageBuckets     = []component.Option{{Value: "", Text: "Automatic"}, {Value: "hour", Text: "Hour"}, {Value: "day", Text: "Day"}, {Value: "month", Text: "Month"}}
	usageComparisons = []component.Option{{Value: "", Text: "Nothing"}, {Value: "before", Text: "Previous period"}}
	usageZones       = zoneOptions("Europe/London", "Europe/Berlin", "Europe/Paris", "Europe/Madrid", "Europe/Warsaw", "Europe/Athens", "Europe/Kyiv", "Europe/Istanbul",
		"Africa/Cairo", "Africa/Lagos", "Africa/Johannesburg", "Africa/Nairobi", "America/New_York", "America/Chicago", "America/Denver", "America/Phoenix",
		"America/Los_Angeles", "America/Mexico_City", "America/Sao_Paulo", "America/Bogota", "America/Argentina/Buenos_Aires", "Asia/Jerusalem", "Asia/Dubai",
		"Asia/Karachi", "Asia/Bangkok", "Asia/Singapore", "Asia/Shanghai", "Asia/Tokyo", "Asia/Seoul", "Australia/Sydney", "Australia/Perth", "Pacific/Auckland")
)

func zoneOptions(names ...string) (list []component.Option) {
	for _, name := range names {
		list = append(list, component.Option{Value: name, Text: zoneText(name)})
	}
	return list
}

// zonesOf are the choices of time zones: that of the viewer first, then UTC.
func zonesOf(req *site.Request) []component.Option {
	if viewer := req.Zone(); !isUTC(viewer) {
		own := component.Option{Text: "Yours (" + zoneText(viewer.String()) + ")"}
		return append([]component.Option{own, {Value: "UTC", Text: "UTC"}}, usageZones...)
	}
	return append([]component.Option{{Text: "UTC"}}, usageZones...)
}

// isUTC reports whether the zone is UTC by any of its names.
func isUTC(zone *time.Location) bool {
	return slices.Contains([]string{"UTC", "Etc/UTC", "GMT", "Etc/GMT"}, zone.String())
}

func zoneText(name string) string { return strings.ReplaceAll(name, "_", " ") }

// hasWholeHours reports whether usage, which is counted by the hour of UTC, has days of
// the zone in the year before a moment.
func hasWholeHours(zone *time.Location, now time.Time) bool {
	for month := range 12 {
		if _, offset := now.AddDate(0, -month, 0).In(zone).Zone(); offset%3600 != 0 {
			return false
		}
	}
	return true
}

// chosen is the value of a choice, or the first.
func chosen(req *site.Request, name string, options []component.Option) string {
	if value := req.Query(name); component.HasOption(options, value) {
		return value
	}
	return options[0].Value
}

// usageInput is what the page was asked for.
type usageInput struct {
	rollups.Query
	key, before        string // of the chosen range, and its comparison in words
	show, by           string
	zone               string // as chosen; the viewer's when it is empty
	zoneNote           string // why it is not the viewer's
	bucket, credit     string
	compare            bool
	rangeFrom, rangeTo int64
	months             string // that are shown whole, instead of the chosen range
	currentYear        int
}

// groupings are what usage can be split by: entities and properties as far as there are
// any.
func groupings(req *site.Request) ([]component.Option, error) {
	options := slices.Clone(usageBys)
	dimensions, err := req.Site.Store.Rollups(req.Scope()).Dimensions(req.Context, maxDimensions)
	for _, d := range dimensions {
		text := "Entity"
		if name := d.PropertyName(); name != "" {
			text = "Property: " + name
		}
		options = append(options, component.Option{Value: string(d), Text: text})
	}
	return options, err
}

func readUsageInput(req *site.Request, bys []component.Option) (in usageInput, problems []component.Problem) {
	in = usageInput{
		show: chosen(req, "show", usageShows), by: chosen(req, "by", bys), zone: chosen(req, "zone", zonesOf(req)), bucket: chosen(req, "bucket", usageBuckets),
		credit: req.Query("credit"), compare: req.Query("compare") == "before",
	}
	in.FeatureKey, in.Identity, in.ByKey = req.Query("feature"), req.Query("identity"), in.by == "key"
	if !component.HasOption(usageBys, in.by) {
		in.Dimension = rollup.Dimension(in.by)
	}
	if in.Identity != "" && (in.ByKey || in.Dimension != "") {
		return in, []component.Problem{{Field: "by", Message: "Usage of one customer is grouped by feature only. Choose Feature, or clear the customer."}}
	}
	zone, err := in.readZone(req)
	if err != nil { // all choices are known
		return in, []component.Problem{{Field: "zone", Message: err.Error()}}
	}
	now := time.UnixMilli(req.Now()).In(zone)
	in.currentYear = now.Year()
	if problems = in.readRange(req, now); len(problems) > 0 {
		return in, problems
	}
	unit := rollup.Unit(in.bucket)
	if unit == "" {
		if unit = automaticUnit(in.rangeTo - in.rangeFrom); in.Dimension != "" {
			unit = rollup.ByDay
		}
	}
	in.Buckets, err = rollup.NewBuckets(in.rangeFrom, in.rangeTo, unit, zone)
	if err != nil {
		return in, []component.Problem{{Field: "bucket", Message: messageOf(err)}}
	}
	in.widenToMonths()
	if in.Dimension != "" {
		if err := in.Buckets.ForDimension(); err != nil {
			return in, []component.Problem{{Field: "by", Message: messageOf(err)}}
		}
	}
	return in, nil
}

// widenToMonths makes a range that is shown by month one of whole months. This month is
// one.
func (in *usageInput) widenToMonths() {
	from, to := in.Buckets.From(), in.Buckets.End
	if in.Buckets.Unit != rollup.ByMonth || in.key == "month" || in.rangeFrom == from && in.rangeTo == to {
		return
	}
	in.rangeFrom, in.rangeTo = from, to
	name := func(ms int64) string { return time.UnixMilli(ms).In(in.Buckets.Zone).Format("January 2006") }
	in.months, in.before = name(from), "in the month before"
	if n := len(in.Buckets.Starts); n > 1 {
		in.months, in.before = name(from)+" to "+name(to-1), "in the previous "+strconv.Itoa(n)+" months"
	}
}

// readZone is the chosen time zone. Unless one is chosen, it is the viewer's where usage
// can be counted by it.
func (in *usageInput) readZone(req *site.Request) (*time.Location, error) {
	viewer := req.Zone()
	switch {
	case in.zone != "":
		return rollup.Zone(in.zone)
	case isUTC(viewer):
	case in.Dimension != "":
		in.zoneNote = "Entities and properties are counted by UTC day."
	case !hasWholeHours(viewer, time.UnixMilli(req.Now())):
		in.zoneNote = "Usage is counted in whole UTC hours, which don't line up with " + zoneText(viewer.String()) + "."
	default:
		return viewer, nil
	}
	return time.UTC, nil
}

// read reads what the page shows: of a dimension, this many values by name.
func (in usageInput) read(req *site.Request, q rollups.Query, values int) (rollups.Usage, error) {
	if q.Dimension == "" {
		return readUsage(req, q)
	}
	return req.Site.Store.Rollups(req.Scope()).LargestValues(req.Context, q, values)
}

// readUsage refuses a query with more rows than a chart adds up.
func readUsage(req *site.Request, q rollups.Query) (rollups.Usage, error) {
	found, err := req.Site.Store.Rollups(req.Scope()).Usage(req.Context, q, rollups.Row{}, maxUsageRows+1)
	if len(found.Rows) > maxUsageRows {
		return rollups.Usage{}, fault.Newf(fault.InvalidRequest, "There is too much to show. Choose a shorter range, a larger bucket or one feature.")
	}
	return found, err
}

// messageOf is the text of a refusal for people.
func messageOf(err error) string {
	if f, ok := err.(*fault.Fault); ok {
		return f.Message
	}
	return "Choose another range."
}

// automaticUnit makes some dozens of bars.
func automaticUnit(length int64) rollup.Unit {
	switch days := length / (24 * rollup.Hour); {
	case days <= 3:
		return rollup.ByHour
	case days <= 100:
		return rollup.ByDay
	default:
		return rollup.ByMonth
	}
}

// readRange reads the days that were typed, or a named range.
func (in *usageInput) readRange(req *site.Request, now time.Time) (problems []component.Problem) {
	day := func(year int, month time.Month, day int) int64 {
		return rollup.FirstOfDay(year, month, day, now.Location())
	}
	y, m, d := now.Date()
	tomorrow := day(y, m, d+1)
	if req.Query("from") != "" || req.Query("to") != "" {
		from, to, problems := readDays(req, now.Location())
		if len(problems) > 0 {
			return problems
		}
		in.key, in.before = "", "in the previous period"
		if in.rangeFrom, in.rangeTo = from, to; to == 0 {
			in.rangeTo = tomorrow
		}
		if from == 0 {
			t := time.UnixMilli(in.rangeTo).In(now.Location())
			in.rangeFrom = day(t.Year(), t.Month(), t.Day()-30)
		}
		if in.rangeFrom >= in.rangeTo {
			return []component.Problem{{Field: "from", Message: "Enter a day that is not after the last one."}}
		}
		return nil
	}
	chosen := usageRanges[0]
	for _, r := range usageRanges {
		if r.key == req.Query("range") {
			chosen = r
		}
	}
	in.key, in.before, in.rangeTo = chosen.key, chosen.before, tomorrow
	switch chosen.key {
	case "month":
		in.rangeFrom = day(y, m, 1)
	case "last":
		in.rangeFrom, in.rangeTo = day(y, m-1, 1), day(y, m, 1)
	case "year":
		in.rangeFrom, in.rangeTo = day(y, m-11, 1), day(y, m+1, 1)
	default:
		days, _ := strconv.Atoi(chosen.key)
		in.rangeFrom = day(y, m, d+1-days)
	}
	return nil
}

// lastMoment is the last one of the range that has passed.
func (in usageInput) lastMoment(req *site.Request) int64 { return min(in.rangeTo-1, req.Now()) }
