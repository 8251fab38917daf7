package main

// Bugs in packed events.
var packingMutants = []mutant{
	{
		name:    "the indexes of packed events stay on the main disk",
		changes: []change{once("store/packing/tablespace.go", "coalesce(i.indrelid, r.oid) IN", "r.oid IN")},
		pkg:     "./store", tests: "TestTheMainDiskHasOnlyRecentEvents",
	},
	{
		name:    "a restore needs the tablespaces of the backup",
		changes: []change{once("store/backup/backup.go", `"--no-tablespaces", `, "")},
		pkg:     "./cmd/purser", tests: "TestPackCommand",
	},
	{
		name:    "packing goes on with the next wallet on a full disk",
		changes: []change{once("store/packing/packing.go", "return state != \"\" && !pg.WasRolledBack(err)", "return false && !pg.WasRolledBack(err)")},
		pkg:     "./store", tests: "TestErrorsOfTheDatabaseEndARun",
	},
	{
		name:    "packing waits for each wallet of a locked table",
		changes: []change{once("store/packing/move.go", "\t\t\t\tlocked++\n", "\t\t\t\tlocked = 1\n")},
		pkg:     "./store", tests: "TestErrorsOfTheDatabaseEndARun",
	},
	{
		name:    "a wallet that can't be packed ends the run",
		changes: []change{once("store/packing/move.go", "if w.Ends(ctx, err) {", "if err != nil {")},
		pkg:     "./store", tests: "TestSkippedWalletsStayAsTheyAre",
	},
	{
		name:    "skipped wallets are not tried again",
		changes: []change{once("store/packing/packing.go", "if last.Skipped == 0 || last.Number == tried {", "if last.Skipped >= 0 {")},
		pkg:     "./store", tests: "TestSkippedWalletsStayAsTheyAre",
	},
	{
		name:    "the command says nothing of skipped wallets",
		changes: []change{once("cmd/purser/pack.go", "if total.Skipped > 0 {", "if total.Skipped < 0 {")},
		pkg:     "./cmd/purser", tests: "TestPackCommand",
	},
	{
		name:    "migrations can't change events beside packed ones",
		changes: []change{once("store/internal/pg/restore.go", `config.RuntimeParams[PackedSetting] = "on"`, `config.RuntimeParams[PackedSetting] = "off"`)},
		pkg:     "./store", tests: "TestMigrationsChangeEventsBesidePackedOnes",
	},
	{
		name:    "a verification of new entries reads packed blocks",
		changes: []change{once("store/internal/pg/packed.go", "PackedSince = ` $2 <= (", "PackedSince = ` $2 >= (")},
		pkg:     "./store", tests: "TestPackedReadsAreBounded",
	},
	{
		name:    "a packed transaction is looked for in all blocks",
		changes: []change{once("store/internal/pg/packed.go", " AND last_tx >= $2 AND first_tx <= $2 AND array_position", " AND array_position")},
		pkg:     "./store", tests: "TestPackedReadsAreBounded",
	},
	{
		name:    "verification does not compare blocks with the runs' last transaction",
		changes: []change{once("store/verify/packed.go", " AND t.tx_id <= $6\n", " AND $6::uuid IS NOT NULL\n")},
		pkg:     "./store", tests: "TestPackedEventsAreVerified",
	},
	{
		name:    "two processes pack one application at once",
		changes: []change{once("store/packing/packing.go", "	if !free {\n", "	if !free && false {\n")},
		pkg:     "./store", tests: "TestPackingRefuses",
	},
	{
		name:    "verification does not see that blocks overlap",
		changes: []change{once("store/verify/packed.go", " AND t.seq > b.last_seq AND", " AND t.seq > b.last_seq - b.last_seq AND")},
		pkg:     "./store", tests: "TestPackedEventsAreVerified",
	},
	{
		name:    "a packed event id is decided from the cache",
		changes: []change{once("store/usage_packed.go", "\treturn may\n", "\treturn may && false\n")},
		pkg:     "./store", tests: "TestPackedEventsAnswerAsBefore|TestNoEventIsChargedTwiceWhileItIsPacked",
	},
	{
		name:    "packed events are not read under locks",
		changes: []change{once("store/usage_track.go", "if err := loadPacked(ctx, conn, batches); err != nil {", "if err := loadPacked(ctx, conn, nil); err != nil {")},
		pkg:     "./store", tests: "TestPackedEventsAnswerAsBefore",
	},
	{
		name:    "packing does not advance the epoch",
		changes: []change{once("store/packing/packing.go", "if _, err := tx.AdvanceEpoch(ctx); err != nil {", "if _, err := tx.AdvanceEpochBy(ctx, 0); err != nil {")},
		pkg:     "./store", tests: "TestPackedEventsAnswerAsBefore",
	},
	{
		name:    "packing does not wait for older transactions",
		changes: []change{once("store/packing/packing.go", "if oldest > own {", "if oldest > 0 {")},
		pkg:     "./store", tests: "TestPackingWaitsForOlderTransactions",
	},
	{
		name:    "an event is packed whose id is not listed",
		changes: []change{once("store/packing/move.go", "if !listed[e.id] {", "if !listed[e.id] && false {")},
		pkg:     "./store", tests: "TestPackingRefuses",
	},
	{
		name:    "an event is packed that is not sealed",
		changes: []change{once("store/packing/move.go", "if last > of.Sealed {", "if false {")},
		pkg:     "./store", tests: "TestPackedEventsAnswerAsBefore",
	},
	{
		name:    "an event is packed that is in no sum",
		changes: []change{once("store/packing/packing.go", "if settled < before {", "if false {")},
		pkg:     "./store", tests: "TestPackingRefuses",
	},
	{
		name:    "packed events keep their rows",
		changes: []change{once("store/packing/statements.go", "DELETE FROM usage_events WHERE app_id = $1 AND wallet_id = $2 AND seq = ANY ($3)", "UPDATE usage_events SET seq = seq WHERE app_id = $1 AND wallet_id = $2 AND seq = ANY ($3)")},
		pkg:     "./store", tests: "TestPackedEventsAnswerAsBefore",
	},
	{
		name:    "an interrupted list of ids counts as complete",
		changes: []change{once("store/packing/index.go", "r.Indexed = read < idsPerRead", "r.Indexed = read < idsPerRead || true")},
		pkg:     "./store", tests: "TestPackingEndsAnywhere",
	},
	{
		name:    "an id of a later time is packed",
		changes: []change{once("store/packing/move.go", "limit := storedID(pg.IDAt(r.Before))", "limit := storedID(pg.IDAt(r.Before << 1))")},
		pkg:     "./store", tests: "TestPackedEventsAnswerAsBefore",
	},
	{
		name:    "earlier releases charge beside packed events",
		changes: []change{once("migrations/packing/fence.sql", "'') = 'on')", "'') <> 'off')")},
		pkg:     "./store", tests: "TestPackingRefuses",
	},
	{
		name:    "verify looks no packed id up",
		changes: []change{once("store/verify/packed.go", "AND EXISTS (SELECT 1 FROM (`+pg.PackedPlaces+`) f WHERE f.wallet_id = p.wallet_id AND f.seq = t.seq)", "AND ($1::uuid IS NULL OR true)")},
		pkg:     "./store", tests: "TestPackedEventsAreVerified",
	},
	{
		name:    "a page reads one block of packed events",
		changes: []change{once("store/internal/pg/packed.go", "k.total > $4::bigint + 1000", "k.total > 0")},
		pkg:     "./store", tests: "TestPackedEventsAnswerAsBefore",
	},
	{
		name:    "events of this month are packed",
		changes: []change{once("cmd/purser/pack.go", "for range keep + 1 {", "for range 0 * keep {")},
		pkg:     "./cmd/purser", tests: "TestPackCommand",
	},
}
