package main

// Bugs in what a wallet holds and who it belongs to.
var walletMutants = []mutant{
	{
		name:    "a balance of before is that of now although credits were spent and added",
		changes: []change{once("store/reports/history.go", "if n.Seq == last[n.Credit].seq {", "if n.Seq >= last[n.Credit].seq {")},
		pkg:     "./store", tests: "TestBalancesAtEveryMoment",
	},
	{
		name:    "a catalog is applied over a newer one",
		changes: []change{once("store/catalog.go", "if state.Version() != expected {", "if expected == \"\" {")},
		pkg:     "./api", tests: "TestConcurrentCatalogsNeverMix",
	},
	{
		name:    "a catalog is applied without its blocked items",
		changes: []change{once("store/catalog.go", "\t\tif err := diff.Refusal(); err != nil {\n\t\t\treturn err\n\t\t}\n", "")},
		pkg:     "./api", tests: "TestCatalogIsAppliedWhollyOrNotAtAll",
	},
	{
		name:    "an alert is announced twice: its mark is not read",
		changes: []change{once("store/usage_alerts.go", "metering.AlertMark{Armed: r.Bool(), FiredAt", "metering.AlertMark{Armed: r.Bool() || true, FiredAt")},
		pkg:     "./store", tests: "TestConcurrentChargesAlertOnce",
	},
	{
		name:    "an alert is announced twice: it needs no recovery",
		changes: []change{once("metering/alerts.go", "return m.Armed && now >=", "return now >=")},
		pkg:     "./metering", tests: "TestALowBalanceIsAnnouncedOnce",
	},
	{
		name:    "a reversal returns more than is left of the charge",
		changes: []change{once("metering/reversal.go", "\tcase requested != nil && *requested > left:\n", "\tcase requested != nil && *requested > e.Charge.Amount:\n")},
		pkg:     "./store", tests: "TestConcurrentReversalsReturnExactlyTheCharge",
	},
	{
		name:    "a full reversal keeps the allowance",
		changes: []change{once("store/reversals.go", "if key := event.Counter(); !key.Period.IsZero() {", "if key := event.Counter(); key.FeatureID.IsZero() {")},
		pkg:     "./store", tests: "TestFullReversalReturnsTheAllowanceAndThePeriod",
	},
	{
		name:    "a full reversal leaves its period billed",
		changes: []change{once("store/reversals.go", "if key := event.Billed(); !key.Period.IsZero() {", "if key := event.Billed(); key.FeatureID.IsZero() {")},
		pkg:     "./store", tests: "TestFullReversalReturnsTheAllowanceAndThePeriod",
	},
	{
		name:    "any hundred reversals of an event are listed",
		changes: []change{once("store/reversals.go", "ORDER BY x.entry_id LIMIT $4) r", "LIMIT $4) r")},
		pkg:     "./store", tests: "TestTheOldestReversalsAreListed",
	},
	{
		name:    "a repeated reversal returns the charge twice",
		changes: []change{once("store/reversals.go", `"idempotency_key": r.IdempotencyKey`, `"idempotency_key": r.ID.String()`)},
		pkg:     "./store", tests: "TestRepeatedReversal",
	},
	{
		name:    "a different adjustment with the id of another is taken for done",
		changes: []change{once("store/adjustments.go", "&& len(same) == 1 && !same[0] {", "&& len(same) > 1 && !same[0] {")},
		pkg:     "./store", tests: "TestAdjust",
	},
	{
		name:    "the page of a wallet renames another customer's",
		changes: []change{once("store/internal/identities/renames.go", "return r.WalletID.IsZero() || r.WalletID == wallet", "return true")},
		pkg:     "./web", tests: "TestSpaceAroundAnIdentity",
	},
	{
		name:    "a repeated rename shows the wallet that was erased",
		changes: []change{once("store/internal/identities/renames.go", "if metering.IsTombstone(w.Identity) {", "if w.Identity == requested.From {")},
		pkg:     "./store", tests: "TestErasedIdentityIsNowhere",
	},
	{
		name:    "an erasure takes the wallet that has the identity by now",
		changes: []change{once("store/internal/identities/erasures.go", " || !requested.WalletID.IsZero() && requested.WalletID != locked[0].ID {", " {")},
		pkg:     "./store", tests: "TestRefusedErasuresChangeNothing",
	},
	{
		name: "a rename leaves the caches of other nodes as they are",
		changes: []change{
			once("store/internal/identities/renames.go", "version = version + $4", "version = version + $4 * 0"),
			once("store/internal/identities/renames.go", "\tif _, err := tx.AdvanceEpoch(ctx); err != nil {\n\t\treturn err\n\t}\n", ""),
			once("store/usage_write.go", "AND identity = $4 THEN", "AND $4::text IS NOT NULL THEN"),
		},
		pkg: "./store", tests: "TestRenamedWalletIsTheSame",
	},
	{
		name:    "an erasure keeps the properties of events",
		changes: []change{once("store/internal/identities/renames.go", "if err == nil && erased {", "if err != nil && erased {")},
		pkg:     "./store", tests: "TestErasedIdentityIsNowhere",
	},
	{
		name:    "an erasure keeps the identity in the answers of operations",
		changes: []change{once("store/internal/identities/erasures.go", "\tif err := payments.Redact(ctx, tx.Tx, w.ID, tombstone); err != nil {\n\t\treturn e, false, err\n\t}\n", "")},
		pkg:     "./store", tests: "TestErasedIdentityIsNowhere",
	},
	{
		name:    "an erasure keeps the requests that a node wrote late",
		changes: []change{once("store/internal/identities/erasures.go", "[]pg.Statement{eraseDenials, eraseFailures, eraseRequests}", "[]pg.Statement{eraseDenials, eraseRequests}")},
		pkg:     "./store", tests: "TestErasedIdentityIsNowhere",
	},
	{
		name:    "sealing a renamed wallet starts over each time",
		changes: []change{once("store/verify/reseal.go", "|| p.chain.seq > p.seq {", "|| p.chain.seq >= 0 {")},
		pkg:     "./store", tests: "TestALargeWalletIsSealedAgainInParts",
	},
	{
		name:    "sealing a renamed wallet goes on with another identity",
		changes: []change{once("store/verify/reseal.go", "!bytes.HasPrefix(progress, after) || ", "bytes.Equal(progress, nil) || ")},
		pkg:     "./store", tests: "TestALargeWalletIsSealedAgainInParts",
	},
	{
		name:    "changed entries are sealed again with a new identity",
		changes: []change{once("store/verify/reseal.go", "if pending.seq > 0 && chain.old != pending.seal {", "if pending.seq < 0 {")},
		pkg:     "./store", tests: "TestSealsOfRenamedWallets",
	},
	{
		name: "a transfer locks its wallets in the order of the request",
		changes: []change{once("store/transfers.go", "\tlocked, err := tx.LockWallets(ctx, requested.From, requested.To)\n",
			"\tlocked, err := tx.LockWallets(ctx, requested.From)\n\tif second, failed := tx.LockWallets(ctx, requested.To); err == nil {\n\t\tlocked, err = append(locked, second...), failed\n\t}\n")},
		pkg: "./store", tests: "TestTransfersInBothDirections",
	},
	{
		name: "a transfer credits the receiver and debits nothing",
		changes: []change{once("store/transfers.go", "Change: func(metering.Balance) (metering.Balance, error) { return decision.From, nil },",
			"Change: func(held metering.Balance) (metering.Balance, error) { return held, nil },")},
		pkg: "./store", tests: "TestTransfersInBothDirections",
	},
	{
		name:    "a repeated transfer moves credits twice",
		changes: []change{once("store/transfers.go", `"idempotency_key": t.IdempotencyKey`, `"idempotency_key": t.ID.String()`)},
		pkg:     "./store", tests: "TestRepeatedTransfer",
	},
	{
		name:    "a transfer takes more than the balance",
		changes: []change{once("metering/transfer.go", "\tif !ok {\n", "\tif !ok && held.Amount == 0 {\n")},
		pkg:     "./store", tests: "TestRefusedTransfersChangeNothing",
	},
	{
		name:    "an allowance that verification does not count again",
		changes: []change{once("store/verify/proof.go", "before != e.used.value {", "false {")},
		pkg:     "./store", tests: "TestVerifyNewFindsAnAllowanceThatWasHandedOutAgain",
	},
	{
		name:    "a journal whose seal is not compared",
		changes: []change{once("store/verify/proof.go", "p.seq == p.sealedSeq && p.seal != p.stored", "false")},
		pkg:     "./store", tests: "TestVerifyFindsEveryCorruption",
	},
	{
		name:    "a seal over entries that differ",
		changes: []change{once("store/verify/seal.go", "!r.proof.known || r.proof.broken", "!r.proof.known")},
		pkg:     "./store", tests: "TestVerifyNewFindsADifferenceUntilItIsRepaired",
	},
	{
		name:    "a lost seal that is made again without a word",
		changes: []change{once("store/verify/batch.go", "if w.sealedBefore && w.seal.seq == 0 {", "if false {")},
		pkg:     "./store", tests: "TestVerifyFindsAMissingSealUntilItIsRestored",
	},
	{
		name:    "a wallet is sealed although a check did not finish",
		changes: []change{once("store/verify/checks.go", "\t\tif !finished {\n\t\t\tfor _, proof", "\t\tif !finished && len(proofs) == 0 {\n\t\t\tfor _, proof")},
		pkg:     "./store", tests: "TestVerifyContinuesAfterACanceledCheck",
	},
	{
		name:    "a debt that is forgotten",
		changes: []change{once("metering/balance.go", "b.Debt.Add(amount - held)", "b.Debt.Add(0)")},
		pkg:     "./metering", tests: "TestTakeBack|TestBalanceIsOneNumber",
	},
}
