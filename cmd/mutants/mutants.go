package main

import "slices"

// mutant is one seeded bug.
type mutant struct {
	name    string
	pkg     string // of the tests that must catch it
	tests   string // as for go test -run
	changes []change
}

func bug(name, pkg, tests string, changes ...change) mutant {
	return mutant{name, pkg, tests, changes}
}

// change replaces a text that stands in the file this many times.
type change struct {
	file  string
	times int
	old   string
	new   string
}

func once(file, old, new string) change { return change{file, 1, old, new} }

const (
	commitUnder = "\tl.engine.write(pipe, batches, now)\n\tpipe.SendCommand(pg.CommitTx)\n\tif err := pipe.Run(); err != nil {\n\t\treturn err\n\t}\n\tfor _, b := range batches {\n\t\tb.markCommitted()"
	runsAgain   = "\t\tif !isDeterministic(err) || (pg.SQLState(err) == pg.UniqueViolation && violations < maxUniqueViolations) {\n"
	ensureFirst = "\t\tif _, err := tx.ExecAny(ctx, EnsureWallets, []ids.ID{id}, []string{identity}, now); err != nil {\n\t\t\treturn Wallet{}, err\n\t\t}\n\t\tlocked, err := tx.LockWallets(ctx, identity)\n"
)

var mutants = slices.Concat(usageMutants, bulkMutants, walletMutants, paymentMutants, startMutants, sandboxMutants, databaseMutants, accountMutants, pageMutants, notificationMutants, rollupMutants, backupMutants, monthlyMutants, packingMutants)

// Bugs in how uses are charged, and in the walls around them.
var usageMutants = []mutant{
	bug("know a key by its id alone, whatever its application", "./api", "TestKeysOfOneIDInTwoApplicationsAreTwoKeys",
		once("api/authenticate.go", "return keyName{c.scope.AppID, c.keyID}", "return keyName{key: c.keyID}")),
	bug("let two idempotency keys that differ pass", "./api", "TestIdempotencyKeyHeader",
		once("api/validate.go", "if given, ok := object[idempotencyField]; ok && given != value {", "if given, ok := object[idempotencyField]; ok && given == nil {")),
	bug("a batch gives up the token that it needs for a full bucket", "./api", "TestBatchesCountAgainstTheRateLimit",
		once("api/batch.go", "httpd.Claim{Tokens: tokens, Held: 1}", "httpd.Claim{Tokens: tokens - 1}")),
	bug("a batch costs no more than a full bucket", "./httpd", "TestBatchesPassAfterTheirRetryAfter",
		once("httpd/buckets.go", "rest += time.Duration(c.Tokens) * b.interval", "rest += time.Duration(min(c.Tokens, b.burst)) * b.interval")),
	bug("let one network hold all connections", "./cmd/purser", "TestOneNetworkCannotHoldAllConnections",
		once("cmd/purser/connections.go", "own.open >= l.limit-len(l.open)", "own.open >= l.limit")),
	bug("one application gets whole batches while others wait", "./store", "TestQueue",
		once("store/usage_queue.go", "\tif q.isShared() {", "\tif q.isShared() && q.closed {")),
	bug("acknowledge before the commit is flushed", "./cmd/purser", "TestCrashesLoseAndDoubleNothing",
		once("store/usage_conns.go", "\tconfig.MaxConnLifetime = 0 // no limit\n",
			"\tconfig.MaxConnLifetime = 0\n\tconfig.ConnConfig.RuntimeParams[\"synchronous_commit\"] = \"off\"\n")),
	bug("take a lost reply to a commit for a success", "./store", "TestCutConnectionsLoseAndDoubleNothing",
		once("store/usage_track.go", commitUnder, `	l.engine.write(pipe, batches, now)
	pipe.SendCommand(pg.CommitTx)
	if err := pipe.Run(); pg.SQLState(err) != "" {
		return err
	}
	for _, b := range batches {
		b.markCommitted()`)),
	bug("take a lost reply to a commit for a failure", "./store", "TestCutConnectionsLoseAndDoubleNothing",
		once("store/usage_track.go", runsAgain, `		if pg.SQLState(err) == "" {
			for _, r := range requests {
				r.fail(err)
			}
			return
		}
`+runsAgain)),
	bug("say that nothing was done when time runs out after a try", "./store", "TestSilentServerIsWaitedForOnlySoLong",
		once("store/usage_track.go",
			"r.fail(fmt.Errorf(\"store: out of time: %w\", r.lastErr))", "r.fail(fmt.Errorf(\"%w\", errOverloaded))")),
	bug("another transaction id for each try", "./store", "TestCutConnectionsLoseAndDoubleNothing",
		once("store/usage_track.go", "\tresetAll(requests)\n\terr = try(",
			"\tresetAll(requests)\n\tfor _, r := range requests {\n\t\tif r.lastErr != nil {\n\t\t\tr.TransactionID = ids.New()\n\t\t}\n\t}\n\terr = try(")),
	bug("a deposit whose commit is unknown is not looked up", "./store", "TestDepositSurvivesACutConnection",
		once("store/internal/pg/tx.go", "\t\tif errors.Is(err, ErrCommitUnknown) {\n\t\t\tunknown = err\n\t\t} else if SQLState(err)", "\t\tif SQLState(err)")),
	bug("no lock on wallets", "./store", "TestWalletPaysForWhatItHoldsAndNoMore|TestNodesNeverWaitForEachOther",
		once("store/internal/ledger/wallets.go", "\n\t\t\tFOR NO KEY UPDATE) w`)", ") w`)")),
	bug("a repeated use creates the wallet of an erased customer again", "./store", "TestARepeatedUseOfAnErasedCustomerMakesNoWallet",
		once("store/usage_track.go", "b.wallets[made] == nil || b.wallets[made].seq == 0 }", "b.wallets[made] == nil }")),
	bug("wallets locked in the order of arrival", "./store", "TestNodesNeverWaitForEachOther",
		once("store/usage_load.go", "\tslices.Sort(list)\n\tfor _, identity := range slices.Compact(list) {",
			"\tfor _, identity := range slices.Collect(uniqueValues(b.requests, func(r *request) string { return r.Identity })) {")),
	bug("events written in the order of arrival", "./store", "TestTwoNodesWriteIdsInOneOrder",
		once("store/usage_insert.go",
			"\tslices.SortFunc(sorted, func(a, b *record) int { return cmp.Compare(a.EventID, b.EventID) })\n", "\t_ = cmp.Compare[int]\n")),
	bug("events written before the wallets are locked", "./store", "TestRepeatsOnTwoNodesDoNotBlockEachOther",
		once("store/usage_write.go", "\t\tb.writeWallets(pipe)\n\t}\n\tfor _, b := range changed {\n\t\tb.writeEvents(pipe, b.appTime(now), e.clockTolerance)\n",
			"\t\tb.writeEvents(pipe, b.appTime(now), e.clockTolerance)\n\t}\n\tfor _, b := range changed {\n\t\tb.writeWallets(pipe)\n")),
	bug("ensure and lock in one statement", "./store", "TestFirstUsesAndDepositsMakeOneWallet",
		once("store/internal/ledger/wallets.go", ensureFirst, "\tlocked, err := pg.Collect(ctx, tx, pg.Statement{Name: \"ensure and lock\", SQL: `"+`
		WITH made AS (
			INSERT INTO wallets (app_id, id, org_id, identity, created_at)
			SELECT s.app_id, $2, s.org_id, $3, $4 FROM app_state s WHERE s.app_id = $1
			ON CONFLICT (app_id, identity) DO NOTHING RETURNING `+"` + WalletColumns + `"+`)
		SELECT `+"` + WalletColumns + `"+` FROM made
		UNION ALL
		(SELECT `+"` + WalletColumns + `"+` FROM wallets WHERE app_id = $1 AND identity = $3 FOR NO KEY UPDATE)`+"`}, ReadWallet, id, identity, now)\n"),
		once("store/internal/ledger/wallets.go", "for range maxIdentityChanges {", "for range 1 {")),
	bug("no unique event id", "./store", "TestEventIsChargedOnce",
		once("migrations/20261115000005_usage.tx.up.sql",
			"ADD CONSTRAINT event_id_is_unique_in_its_application PRIMARY KEY (app_id, event_id);", "ADD COLUMN twice boolean;\n--bun:split\nCREATE INDEX events_by_id ON usage_events (app_id, event_id);")),
	bug("no epoch guard for a lone use", "./store", "TestChangesHoldForTheFirstUseAfterThem",
		once("store/usage_insert.go", "` FROM app_state s WHERE `+sameEpoch)", "` FROM app_state s WHERE `+strings.Replace(sameEpoch, \"= $3\", \"= $3 OR true\", 1))")),
	bug("no epoch guard for a batch", "./store", "TestChangesHoldForABatchAfterThem",
		once("store/usage_insert.go", "`) AS t (`+list+`) WHERE `+sameEpoch)",
			"`) AS t (`+list+`) WHERE `+strings.Replace(sameEpoch, \"= $3\", \"= $3 OR true\", 1))")),
	bug("no version guard for a lone use", "./store", "TestChangesHoldForTheFirstUseAfterThem|TestWalletPaysForWhatItHoldsAndNoMore",
		once("store/usage_write.go",
			"CASE WHEN version = $5::bigint AND identity = $4 THEN", "CASE WHEN $5::bigint IS NOT NULL AND identity = $4 THEN")),
	bug("no version guard for a batch", "./store", "TestChangesHoldForABatchAfterThem",
		once("store/usage_write.go",
			"CASE WHEN wallets.version = excluded.version THEN wallets.version + $2::bigint ELSE -1 END", "wallets.version + $2::bigint")),
	bug("no version guard for checks", "./store", "TestChangesHoldForTheFirstUseAfterThem|TestWalletIsLinearizable",
		once("store/usage_check.go",
			"return found && wallet == c.wallet && ", "return found && wallet.id == c.wallet.id && ")),
	bug("a check takes the wallet that had the identity before", "./store", "TestAChecksWalletIsTheOneThatHasTheIdentity",
		once("store/usage_check.go",
			"return found && wallet == c.wallet && ", "return found && wallet.version == c.wallet.version && ")),
	bug("a refusal from memory", "./store", "TestChangesHoldForTheFirstUseAfterThem",
		once("store/usage_optimistic.go", "\tif d.Verdict != metering.Accepted || !d.New {\n",
			"\tif d.Verdict == metering.Refused {\n\t\tr.decision = d\n\t}\n\tif d.Verdict != metering.Accepted || !d.New {\n"),
		once("store/usage_optimistic.go", "r.resolved = r.decision.New", "r.resolved = r.decision.New || r.decision.Verdict == metering.Refused")),
	bug("memory that was enough a moment ago decides now", "./store", "TestMemoryChangesBetweenTwoLooks",
		once("store/usage_optimistic.go", "\t\tif !w.canDecide(r.Usage.Usage) {\n\t\t\treturn false", "\t\tif _ = r; w.version < 0 {\n\t\t\treturn false")),
	bug("a committed use is refused for a key that was revoked since", "./store", "TestKeyIsRevokedWhileACommitIsUnknown",
		once("store/usage_load.go",
			"if event := b.events[r.EventID]; event != nil && event.TransactionID == r.TransactionID {", "if event := b.events[r.EventID]; event != nil && event.TransactionID.IsZero() {")),
	bug("a use is accepted that has no wallet", "./store", "TestPriceFallsWhileAWalletIsMade",
		once("store/usage_track.go", "if len(b.missingWallets) > 0 || slices.", "if len(b.missingWallets) < 0 || slices.")),
	bug("what an allowance does not cover is not counted", "./store", "TestHistoriesEndAsTheModelSays",
		once("store/usage_write.go", "r.Allowance.Limited() && !done[key] {", "r.Allowance.Covered > 0 && !done[key] {")),
	bug("a deposit does not move the wallet's version", "./store", "TestWalletPaysForWhatItHoldsAndNoMore|TestChangesHoldForTheFirstUseAfterThem|TestNodesNeverWaitForEachOther",
		once("store/internal/ledger/journal.go", "version = version + $4", "version = version + $4 * 0")),
	bug("a price in floating point", "./metering", "TestPrice|TestPriceIsExact",
		once("metering/price.go", `import "math/bits"`, "import (\n\t\"math\"\n\t\"math/bits\"\n)"),
		once("metering/price.go", "\treturn product(uint64(cost), uint64(billable), uint64(basisPoints)).\n",
			"\tif f := math.Ceil(float64(cost) * float64(billable) * float64(basisPoints) / float64(quantityPerUnit) / float64(ListPrice)); f <= float64(MaxAmount) {\n\t\treturn Amount(f), true\n\t}\n\treturn product(uint64(cost), uint64(billable), uint64(basisPoints)).\n")),
	bug("a queue without a limit", "./store", "TestQueue",
		once("store/usage_queue.go",
			"return !q.closed && q.size+more <= q.limits.queued && waiting+more <= q.limits.queuedPerApp", "return !q.closed && waiting >= 0")),
	bug("a panic that leaves callers waiting", "./store", "TestPanicReleasesEveryCaller",
		once("store/usage_batcher.go", "\t\tdefault:\n\t\t\tr.done <- struct{}{}\n", "\t\tcase r.err == nil:\n\t\t\tr.done <- struct{}{}\n")),
	bug("a policy that admits every tenant", "./store", "TestRowLevelSecurity|TestTheSchemaKeepsTheWalls",
		once("migrations/20261115000011_lean.tx.up.sql", "ON %I USING (app_id::text =", "ON %I USING (true OR app_id::text ="),
		once("store/internal/pg/rights.go", "policyRule = `app_id::text =", "policyRule = `true OR app_id::text ="),
		once("store/internal/pg/rights.go", "policyText = `((app_id)::text = current_setting('purser.app_id'::text, true))`", "policyText = `(true OR ((app_id)::text = current_setting('purser.app_id'::text, true)))`")),
	bug("no question whether a key may ingest, in the batch", "./store", "TestKeyMustBeAllowedToIngest",
		once("store/usage_load.go", "\treturn key.Permissions.Require(tenancy.EventsIngest)\n", "\t_ = tenancy.EventsIngest\n\treturn nil\n")),
	bug("a preview that hides a refusal", "./billing", "TestThePreviewIsWhatTheChangeDoes|TestThePreviewOfAFreePlanIsWhatTheChangeDoes",
		once("billing/preview.go", "\t\tp.RefusedBy = f.Code\n", "\t\t_ = f.Code\n")),
	bug("a preview that grants a free plan's credits twice", "./billing", "TestThePreviewIsWhatTheChangeDoes|TestThePreviewOfAFreePlanIsWhatTheChangeDoes",
		once("billing/preview.go", "order.Target, s.Payments, now)", "order.Target, nil, now)")),
	bug("no question whether a key may do it, at the edge", "./api", "TestPermissionMatrix",
		once("api/authenticate.go", "\treturn c.key.Permissions.RequireAll(c.route.permissions)\n", "\treturn nil\n")),
}
