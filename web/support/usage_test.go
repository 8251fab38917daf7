package support

import (
	"testing"

	"purser/ids"
	"purser/metering/rollup"
	"purser/store/rollups"
)

func TestUsageOfADeletedKeyHasANameInTheTableAndTheChart(t *testing.T) {
	t.Parallel()
	deleted := ids.New()
	in := usageInput{by: "key", show: "events"}
	u := rollups.Usage{Rows: []rollups.Row{{KeyID: deleted, Sums: rollup.Sums{Events: 3}}}}
	head, rows := usageGroups(nil, in, u)
	if head != "API key" || len(rows) != 1 || rows[0].Name != "Deleted key" || rows[0].Detail != "" || rows[0].Events != 3 {
		t.Errorf("the table has %s: %+v", head, rows)
	}
	if group, name := in.groupOf(u, u.Rows[0]); group != deleted || name != rows[0].Name {
		t.Errorf("the chart calls it %q", name)
	}
}
