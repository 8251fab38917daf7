package cashier_test

import "testing"

// TestModelJudgesKnownHistories plays histories that once ended with wrong books or
// a wrong answer, as the model shrank them.
func TestModelJudgesKnownHistories(t *testing.T) {
	t.Parallel()
	plain, brim := modelTemplates(t)
	for _, c := range []struct {
		claim string
		brim  bool
		steps []modelStep
	}{
		{"a plan that grants two credits to a wallet with 99 balances", true, []modelStep{
			{Do: "buy", Plan: "pro", Card: cardPays},
		}},
		{"a plan that grants credits to a wallet with 100 balances", true, []modelStep{
			{Do: "buy", Who: 1, Plan: "annual", Card: cardPays},
		}},
		{"a free plan in a wallet that has become full", true, []modelStep{
			{Do: "deposit", How: 1},
			{Do: "change", Plan: "free"},
			{Do: "wait", Wait: 40 * modelDay},
		}},
		{"a top-up of a new credit in a full wallet", true, []modelStep{
			{Do: "topup", Who: 1, How: 1, Card: cardPays},
		}},
		{"a top-up into a balance near its limit", true, []modelStep{
			{Do: "topup", Who: 1, How: 4, Card: cardPays},
		}},
		{"a refund whose debt passes the limit", true, []modelStep{
			{Do: "topup", How: 4, Card: cardPays},
			{Do: "spend", How: 0},
			{Do: "topup", How: 4, Card: cardPays},
			{Do: "spend", How: 0},
			{Do: "refund", How: 0},
			{Do: "refund", How: 3},
		}},
		{"an upgrade in the hour after a period's end", false, []modelStep{
			{Do: "buy", Plan: "basic", Card: cardPays},
			{Do: "wait", How: waitIntoDraft},
			{Do: "change", Plan: "pro"},
		}},
		{"a downgrade in the hour after a period's end", false, []modelStep{
			{Do: "buy", Plan: "pro", Card: cardPays},
			{Do: "wait", How: waitIntoDraft},
			{Do: "change", Plan: "basic"},
			{Do: "wait", Wait: 33 * modelDay},
		}},
		{"a cancellation in the hour after a period's end", false, []modelStep{
			{Do: "buy", Plan: "basic", Card: cardPays},
			{Do: "wait", How: waitIntoDraft},
			{Do: "cancel"},
			{Do: "wait", Wait: 33 * modelDay},
		}},
		{"a checkout that is paid on a free plan", false, []modelStep{
			{Do: "open", Plan: "basic"},
			{Do: "change", Plan: "free"},
			{Do: "pay", Card: cardPays},
		}},
		{"a purchase and an upgrade within one second, then a downgrade", false, []modelStep{
			{Do: "buy", Plan: "basic", Card: cardPays},
			{Do: "change", Plan: "pro"},
			{Do: "change", Plan: "basic"},
			{Do: "wait", How: waitIntoDraft},
		}},
		{"staying while a downgrade is billed", false, []modelStep{
			{Do: "buy", Plan: "pro", Card: cardPays},
			{Do: "change", Plan: "basic"},
			{Do: "wait", How: waitIntoDraft},
			{Do: "change", Plan: "pro"},
			{Do: "wait", Wait: 33 * modelDay},
		}},
		{"a second downgrade while the first is billed", false, []modelStep{
			{Do: "buy", Plan: "pro", Card: cardPays},
			{Do: "change", Plan: "basic"},
			{Do: "wait", How: waitIntoDraft},
			{Do: "change", Plan: "lite"},
			{Do: "wait", Wait: 2 * modelHour},
			{Do: "wait", Wait: 33 * modelDay},
		}},
		{"staying after a second downgrade while the first is billed", false, []modelStep{
			{Do: "buy", Plan: "pro", Card: cardPays},
			{Do: "change", Plan: "basic"},
			{Do: "wait", How: waitIntoDraft},
			{Do: "change", Plan: "lite"},
			{Do: "change", Plan: "pro"},
			{Do: "wait", Wait: 33 * modelDay},
		}},
		{"a pending upgrade beside a billed downgrade", false, []modelStep{
			{Do: "buy", Plan: "lite", Card: cardPays},
			{Do: "change", Plan: "free"},
			{Do: "card", Card: cardFailsLater},
			{Do: "wait", How: waitIntoDraft},
			{Do: "change", Plan: "annual"},
			{Do: "wait", Wait: 2 * modelHour},
		}},
		{"a downgrade from a price that was edited", false, []modelStep{
			{Do: "buy", Plan: "basic", Card: cardPays},
			{Do: "edit", Plan: "basic"},
			{Do: "wait", Wait: 26 * modelHour},
			{Do: "change", Plan: "free"},
			{Do: "wait", Wait: 33 * modelDay},
		}},
		{"a change of a free plan while a page is debited", false, []modelStep{
			{Do: "open", Plan: "basic", Card: cardDeclined},
			{Do: "change", Plan: "free"},
			{Do: "pay", Card: bankSucceeds},
			{Do: "change", Plan: "basic"},
		}},
		{"an upgrade by card while the renewal is debited", false, []modelStep{
			{Do: "buy", Plan: "basic", Card: bankSucceeds},
			{Do: "wait", How: waitPastDraft},
			{Do: "change", Plan: "pro", How: 2},
			{Do: "wait", Wait: 4 * modelDay},
		}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			t.Parallel()
			template := plain
			if c.brim {
				template = brim
			}
			modelPlay{template: template, brim: c.brim}.history(t, t.Context(), c.steps...)
		})
	}
}
