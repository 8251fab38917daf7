package main

import "slices"

// mutant is one seeded bug.
type mutant struct {
	name    string
	changes []change
	pkg     string // of the tests that must catch it
	tests   string // as for go test -run
}

// change replaces a text that stands in the file so many times.
type change struct {
	file  string
	times int
	old   string
	new   string
}

func once(file, old, new string) change { return change{file, 1, old, new} }

const (
	commitUnder = "\tu.write(p, batches, now)\n\tp.SendCommand(pg.CommitTx)\n\tif err := p.Run(); err != nil {\n\t\treturn err\n\t}\n\tfor _, b := range batches {\n\t\tb.markCommitted()"
	runsAgain   = "\t\tif !isDeterministic(err) || (pg.SQLState(err) == pg.UniqueViolation && violations < maxUniqueViolations) {\n"
	ensureFirst = "\t\tif _, err := tx.ExecAny(ctx, EnsureWallets, []ids.ID{id}, []string{identity}, now); err != nil {\n\t\t\treturn Wallet{}, err\n\t\t}\n\t\tlocked, err := tx.LockWallets(ctx, identity)\n"
)

var mutants = slices.Concat(usageMutants, bulkMutants, walletMutants, paymentMutants, startMutants, sandboxMutants, databaseMutants, accountMutants, pageMutants, notificationMutants, rollupMutants, backupMutants, monthlyMutants, packingMutants)

// Bugs in how uses are charged, and in the walls around them.
var usageMutants = []mutant{
	{
		name:    "know a key by its id alone, whatever its application",
		changes: []change{once("api/authenticate.go", "return keyName{c.scope.AppID, c.keyID}", "return keyName{key: c.keyID}")},
		pkg:     "./api", tests: "TestKeysOfOneIDInTwoApplicationsAreTwoKeys",
	},
	{
		name:    "let two idempotency keys that differ pass",
		changes: []change{once("api/validate.go", "if given, ok := object[idempotencyField]; ok && given != value {", "if given, ok := object[idempotencyField]; ok && given == nil {")},
		pkg:     "./api", tests: "TestIdempotencyKeyHeader",
	},
	{
		name:    "a batch gives up the token that it needs for a full bucket",
		changes: []change{once("api/batch.go", "claim{tokens: tokens, held: 1}", "claim{tokens: tokens - 1}")},
		pkg:     "./api", tests: "TestBatchesCountAgainstTheRateLimit",
	},
	{
		name:    "a batch costs no more than a full bucket",
		changes: []change{once("api/bucket.go", "rest += time.Duration(c.tokens) * b.interval", "rest += time.Duration(min(c.tokens, b.burst)) * b.interval")},
		pkg:     "./api", tests: "TestBatchesPassWhenTheyWereToldTo",
	},
	{
		name:    "let one network hold all connections",
		changes: []change{once("cmd/purser/connections.go", "own.open >= l.limit-len(l.open)", "own.open >= l.limit")},
		pkg:     "./cmd/purser", tests: "TestOneNetworkCannotHoldAllConnections",
	},
	{
		name:    "one application gets whole batches while others wait",
		changes: []change{once("store/usage_queue.go", "\tif q.isShared() {", "\tif q.isShared() && q.closed {")},
		pkg:     "./store", tests: "TestQueue",
	},
	{
		name: "acknowledge before the commit is flushed",
		changes: []change{once("store/usage_conns.go", "\tconfig.MaxConnLifetime = 0 // no limit\n",
			"\tconfig.MaxConnLifetime = 0\n\tconfig.ConnConfig.RuntimeParams[\"synchronous_commit\"] = \"off\"\n")},
		pkg: "./cmd/purser", tests: "TestCrashesLoseAndDoubleNothing",
	},
	{
		name: "take a lost reply to a commit for a success",
		changes: []change{once("store/usage_track.go", commitUnder, `	u.write(p, batches, now)
	p.SendCommand(pg.CommitTx)
	if err := p.Run(); pg.SQLState(err) != "" {
		return err
	}
	for _, b := range batches {
		b.markCommitted()`)},
		pkg: "./store", tests: "TestCutConnectionsLoseAndDoubleNothing",
	},
	{
		name: "take a lost reply to a commit for a failure",
		changes: []change{once("store/usage_track.go", runsAgain, `		if pg.SQLState(err) == "" {
			for _, p := range requests {
				p.fail(err)
			}
			return
		}
`+runsAgain)},
		pkg: "./store", tests: "TestCutConnectionsLoseAndDoubleNothing",
	},
	{
		name: "say that nothing was done when time runs out after a try",
		changes: []change{once("store/usage_track.go",
			"p.fail(fmt.Errorf(\"store: out of time: %w\", p.lastErr))", "p.fail(fmt.Errorf(\"%w\", errOverloaded))")},
		pkg: "./store", tests: "TestSilentServerIsWaitedForOnlySoLong",
	},
	{
		name: "another transaction id for each try",
		changes: []change{once("store/usage_track.go", "\tresetAll(requests)\n\terr = try(",
			"\tresetAll(requests)\n\tfor _, p := range requests {\n\t\tif p.lastErr != nil {\n\t\t\tp.TransactionID = ids.New()\n\t\t}\n\t}\n\terr = try(")},
		pkg: "./store", tests: "TestCutConnectionsLoseAndDoubleNothing",
	},
	{
		name:    "a deposit whose commit is unknown is not looked up",
		changes: []change{once("store/internal/pg/tx.go", "if SQLState(err) != UniqueViolation && !errors.Is(err, ErrCommitUnknown) {", "if SQLState(err) != UniqueViolation || errors.Is(err, ErrCommitUnknown) {")},
		pkg:     "./store", tests: "TestDepositSurvivesACutConnection",
	},
	{
		name:    "no lock on wallets",
		changes: []change{once("store/internal/ledger/wallets.go", "\n\t\t\tFOR NO KEY UPDATE) w`)", ") w`)")},
		pkg:     "./store", tests: "TestWalletPaysForWhatItHoldsAndNoMore|TestNodesNeverWaitForEachOther",
	},
	{
		name: "wallets locked in the order of arrival",
		changes: []change{once("store/usage_load.go", "\tslices.Sort(list)\n\tfor _, identity := range slices.Compact(list) {",
			"\tfor _, identity := range slices.Collect(uniqueValues(b.requests, func(u *request) string { return u.Identity })) {")},
		pkg: "./store", tests: "TestNodesNeverWaitForEachOther",
	},
	{
		name: "events written in the order of arrival",
		changes: []change{once("store/usage_insert.go",
			"\tslices.SortFunc(sorted, func(a, b *record) int { return cmp.Compare(a.EventID, b.EventID) })\n", "\t_ = cmp.Compare[int]\n")},
		pkg: "./store", tests: "TestTwoNodesWriteIdsInOneOrder",
	},
	{
		name: "events written before the wallets are locked",
		changes: []change{once("store/usage_write.go", "\t\tb.writeWallets(p)\n\t}\n\tfor _, b := range changed {\n\t\tb.writeEvents(p, b.appTime(now), u.clockTolerance)\n",
			"\t\tb.writeEvents(p, b.appTime(now), u.clockTolerance)\n\t}\n\tfor _, b := range changed {\n\t\tb.writeWallets(p)\n")},
		pkg: "./store", tests: "TestRepeatsOnTwoNodesDoNotBlockEachOther",
	},
	{
		name: "ensure and lock in one statement",
		changes: []change{once("store/internal/ledger/wallets.go", ensureFirst, "\tlocked, err := pg.Collect(ctx, tx, pg.Statement{Name: \"ensure and lock\", SQL: `"+`
		WITH made AS (
			INSERT INTO wallets (app_id, id, org_id, identity, created_at)
			SELECT s.app_id, $2, s.org_id, $3, $4 FROM app_state s WHERE s.app_id = $1
			ON CONFLICT (app_id, identity) DO NOTHING RETURNING `+"` + WalletColumns + `"+`)
		SELECT `+"` + WalletColumns + `"+` FROM made
		UNION ALL
		(SELECT `+"` + WalletColumns + `"+` FROM wallets WHERE app_id = $1 AND identity = $3 FOR NO KEY UPDATE)`+"`}, ReadWallet, id, identity, now)\n"),
			once("store/internal/ledger/wallets.go", "for range maxIdentityChanges {", "for range 1 {")},
		pkg: "./store", tests: "TestFirstUsesAndDepositsMakeOneWallet",
	},
	{
		name: "no unique event id",
		changes: []change{once("migrations/20261115000005_usage.tx.up.sql",
			"ADD CONSTRAINT event_id_is_unique_in_its_application PRIMARY KEY (app_id, event_id);", "ADD COLUMN twice boolean;\n--bun:split\nCREATE INDEX events_by_id ON usage_events (app_id, event_id);")},
		pkg: "./store", tests: "TestEventIsChargedOnce",
	},
	{
		name:    "no epoch guard for a lone use",
		changes: []change{once("store/usage_insert.go", "` FROM app_state s WHERE `+sameEpoch)", "` FROM app_state s WHERE `+strings.Replace(sameEpoch, \"= $3\", \"= $3 OR true\", 1))")},
		pkg:     "./store", tests: "TestChangesHoldForTheFirstUseAfterThem",
	},
	{
		name: "no epoch guard for a batch",
		changes: []change{once("store/usage_insert.go", "`) AS t (`+list+`) WHERE `+sameEpoch)",
			"`) AS t (`+list+`) WHERE `+strings.Replace(sameEpoch, \"= $3\", \"= $3 OR true\", 1))")},
		pkg: "./store", tests: "TestChangesHoldForABatchAfterThem",
	},
	{
		name: "no version guard for a lone use",
		changes: []change{once("store/usage_write.go",
			"CASE WHEN version = $5::bigint AND identity = $4 THEN", "CASE WHEN $5::bigint IS NOT NULL AND identity = $4 THEN")},
		pkg: "./store", tests: "TestChangesHoldForTheFirstUseAfterThem|TestWalletPaysForWhatItHoldsAndNoMore",
	},
	{
		name: "no version guard for a batch",
		changes: []change{once("store/usage_write.go",
			"CASE WHEN wallets.version = excluded.version THEN wallets.version + $2::bigint ELSE -1 END", "wallets.version + $2::bigint")},
		pkg: "./store", tests: "TestChangesHoldForABatchAfterThem",
	},
	{
		name: "no version guard for checks",
		changes: []change{once("store/usage_check.go",
			"return found && wallet == g.wallet && ", "return found && wallet.id == g.wallet.id && ")},
		pkg: "./store", tests: "TestChangesHoldForTheFirstUseAfterThem|TestWalletIsLinearizable",
	},
	{
		name: "a check takes the wallet that had the identity before",
		changes: []change{once("store/usage_check.go",
			"return found && wallet == g.wallet && ", "return found && wallet.version == g.wallet.version && ")},
		pkg: "./store", tests: "TestAChecksWalletIsTheOneThatHasTheIdentity",
	},
	{
		name: "a refusal from memory",
		changes: []change{
			once("store/usage_optimistic.go", "\tif d.Verdict != metering.Accepted || !d.New {\n",
				"\tif d.Verdict == metering.Refused {\n\t\tuse.decision = d\n\t}\n\tif d.Verdict != metering.Accepted || !d.New {\n"),
			once("store/usage_optimistic.go", "use.resolved = use.decision.New", "use.resolved = use.decision.New || use.decision.Verdict == metering.Refused"),
		},
		pkg: "./store", tests: "TestChangesHoldForTheFirstUseAfterThem",
	},
	{
		name:    "memory that was enough a moment ago decides now",
		changes: []change{once("store/usage_optimistic.go", "\t\tif !w.canDecide(use.Usage.Usage) {\n\t\t\treturn false", "\t\tif _ = use; w.version < 0 {\n\t\t\treturn false")},
		pkg:     "./store", tests: "TestMemoryChangesBetweenTwoLooks",
	},
	{
		name: "a committed use is refused for a key that was revoked since",
		changes: []change{once("store/usage_load.go",
			"if e := b.events[u.EventID]; e != nil && e.TransactionID == u.TransactionID {", "if e := b.events[u.EventID]; e != nil && e.TransactionID.IsZero() {")},
		pkg: "./store", tests: "TestKeyIsRevokedWhileACommitIsUnknown",
	},
	{
		name:    "a use is accepted that has no wallet",
		changes: []change{once("store/usage_track.go", "if len(b.missingWallets) > 0 {\n\t\t\t\treturn errWalletMissing", "if len(b.missingWallets) < 0 {\n\t\t\t\treturn errWalletMissing")},
		pkg:     "./store", tests: "TestPriceFallsWhileAWalletIsMade",
	},
	{
		name:    "what an allowance does not cover is not counted",
		changes: []change{once("store/usage_write.go", "r.Allowance.Limited() && !done[key] {", "r.Allowance.Covered > 0 && !done[key] {")},
		pkg:     "./store", tests: "TestHistoriesEndAsTheModelSays",
	},
	{
		name:    "a deposit does not move the wallet's version",
		changes: []change{once("store/internal/ledger/journal.go", "version = version + $4", "version = version + $4 * 0")},
		pkg:     "./store", tests: "TestWalletPaysForWhatItHoldsAndNoMore|TestChangesHoldForTheFirstUseAfterThem|TestNodesNeverWaitForEachOther",
	},
	{
		name: "a price in floating point",
		changes: []change{
			once("metering/price.go", `import "math/bits"`, "import (\n\t\"math\"\n\t\"math/bits\"\n)"),
			once("metering/price.go", "\treturn product(uint64(cost), uint64(billable), uint64(basisPoints)).\n",
				"\tif f := math.Ceil(float64(cost) * float64(billable) * float64(basisPoints) / float64(quantityPerUnit) / float64(ListPrice)); f <= float64(MaxAmount) {\n\t\treturn Amount(f), true\n\t}\n\treturn product(uint64(cost), uint64(billable), uint64(basisPoints)).\n"),
		},
		pkg: "./metering", tests: "TestPrice|TestPriceIsExact",
	},
	{
		name: "a queue without a limit",
		changes: []change{once("store/usage_queue.go",
			"return !q.closed && q.size+more <= q.limits.queued && waiting+more <= q.limits.queuedPerApp", "return !q.closed && waiting >= 0")},
		pkg: "./store", tests: "TestQueue",
	},
	{
		name:    "a panic that leaves callers waiting",
		changes: []change{once("store/usage_batcher.go", "\t\tdefault:\n\t\t\tp.done <- struct{}{}\n", "\t\tcase p.err == nil:\n\t\t\tp.done <- struct{}{}\n")},
		pkg:     "./store", tests: "TestPanicReleasesEveryCaller",
	},
	{
		name: "a policy that admits every tenant",
		changes: []change{
			once("migrations/20261115000011_lean.tx.up.sql", "ON %I USING (app_id::text =", "ON %I USING (true OR app_id::text ="),
			once("store/internal/pg/rights.go", "policyRule = `app_id::text =", "policyRule = `true OR app_id::text ="),
			once("store/internal/pg/rights.go", "policyText = `((app_id)::text = current_setting('purser.app_id'::text, true))`", "policyText = `(true OR ((app_id)::text = current_setting('purser.app_id'::text, true)))`"),
		},
		pkg: "./store", tests: "TestRowLevelSecurity|TestTheSchemaKeepsTheWalls",
	},
	{
		name:    "no question whether a key may ingest, in the batch",
		changes: []change{once("store/usage_load.go", "\treturn key.Permissions.Require(tenancy.EventsIngest)\n", "\t_ = tenancy.EventsIngest\n\treturn nil\n")},
		pkg:     "./store", tests: "TestKeyMustBeAllowedToIngest",
	},
	{
		name:    "a preview that hides a refusal",
		changes: []change{once("billing/preview.go", "\t\tp.RefusedBy = f.Code\n", "\t\t_ = f.Code\n")},
		pkg:     "./billing", tests: "TestThePreviewIsWhatTheChangeDoes|TestThePreviewOfAFreePlanIsWhatTheChangeDoes",
	},
	{
		name:    "a preview that grants a free plan's credits twice",
		changes: []change{once("billing/preview.go", "order.Target, s.Payments, now)", "order.Target, nil, now)")},
		pkg:     "./billing", tests: "TestThePreviewIsWhatTheChangeDoes|TestThePreviewOfAFreePlanIsWhatTheChangeDoes",
	},
	{
		name:    "no question whether a key may do it, at the edge",
		changes: []change{once("api/authenticate.go", "\treturn c.key.Permissions.RequireAll(c.route.permissions)\n", "\treturn nil\n")},
		pkg:     "./api", tests: "TestPermissionMatrix",
	},
}
