package api

import (
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"purser/fault"
	"purser/httpd"
	"purser/metering"
)

// TestHotRepliesAreTheSameJSON compares what the hot path appends with what reflection
// gives.
func TestHotRepliesAreTheSameJSON(t *testing.T) {
	t.Parallel()
	text, number := rapid.String(), rapid.Int64()
	optional := rapid.Ptr(number, true)
	same := func(t *rapid.T, body httpd.JSONAppender) {
		want, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := body.AppendJSON([]byte("before")); string(got) != "before"+string(want) {
			t.Fatalf("appended %s, want %s", got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		same(t, eventReply{
			Status: metering.Verdict(text.Draw(t, "status")), TransactionID: text.Draw(t, "transaction"),
			AmountNanocredits: text.Draw(t, "amount"), PeriodStart: optional.Draw(t, "start"), PeriodEnd: optional.Draw(t, "end"),
			DeduplicatedFrom: text.Draw(t, "from"),
		})
		check := hotCheckReply{
			Allowed: rapid.Bool().Draw(t, "allowed"), CreditKey: text.Draw(t, "credit"), AmountNanocredits: text.Draw(t, "amount"),
			BalanceNanocredits: text.Draw(t, "balance"), PeriodStart: optional.Draw(t, "start"), PeriodEnd: optional.Draw(t, "end"),
			Reason: fault.Code(text.Draw(t, "reason")),
		}
		if rapid.Bool().Draw(t, "limited") {
			check.Limit = &limitReply{
				Limit: number.Draw(t, "limit"), Used: number.Draw(t, "used"), Remaining: number.Draw(t, "remaining"),
				PeriodStart: number.Draw(t, "start"), PeriodEnd: number.Draw(t, "end"), Overage: text.Draw(t, "overage"),
			}
		}
		same(t, check)
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) itemReply {
			return itemReply{
				Index: rapid.Int().Draw(t, "index"), ID: text.Draw(t, "id"), Status: metering.Verdict(text.Draw(t, "status")),
				TransactionID: text.Draw(t, "transaction"), AmountNanocredits: text.Draw(t, "amount"), PeriodStart: optional.Draw(t, "start"),
				PeriodEnd: optional.Draw(t, "end"), DeduplicatedFrom: text.Draw(t, "from"), Error: fault.Code(text.Draw(t, "error")),
				Message: text.Draw(t, "message"), Pointer: text.Draw(t, "pointer"),
			}
		}), 0, 3).Draw(t, "items")
		count := func(name string) int { return rapid.Int().Draw(t, name) }
		same(t, groupReply{Results: items})
		same(t, batchReply{Results: items, Counts: batchCounts{
			Accepted: count("accepted"), Duplicate: count("duplicate"), Deduplicated: count("deduplicated"),
			Refused: count("refused"), Invalid: count("invalid"), Unknown: count("unknown"),
		}})
	})
}
