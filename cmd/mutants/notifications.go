package main

// Bugs in what other systems are told.
var notificationMutants = []mutant{
	{
		name: "a notification is inserted after the commit",
		changes: []change{
			once("store/internal/pg/tx.go", "	notified bool             // it inserted notifications\n", "	notified bool             // it inserted notifications\n	after    []func(context.Context, *Tx) error\n"),
			once("store/internal/pg/tx.go", "	if tx.notified {\n", "	for _, late := range tx.after {\n		if err := a.Attempt(ctx, late); err != nil {\n			return err\n		}\n	}\n	if tx.notified {\n"),
			once("store/internal/pg/outbox.go", "	return tx.Exec(ctx, InsertNotifications, int64(len(list)), notificationIDs, types, wallets, data, created)\n",
				"	tx.after = append(tx.after, func(ctx context.Context, tx *Tx) error {\n		return tx.Exec(ctx, InsertNotifications, int64(len(list)), notificationIDs, types, wallets, data, created)\n	})\n	return nil\n"),
		},
		pkg: "./store/notifications", tests: "TestNotificationsNeedTheirTransaction",
	},
	{
		name: "a notification is numbered at its insert",
		changes: []change{
			once("store/internal/pg/outbox.go", "(app_id, id, org_id, type, wallet_id, data, created_at)\n", "(app_id, id, org_id, type, wallet_id, data, created_at, seq)\n"),
			once("store/internal/pg/outbox.go", "t.data::jsonb, t.created_at\n",
				"t.data::jsonb, t.created_at, (extract(epoch FROM clock_timestamp()) * 1e6)::bigint + row_number() OVER ()\n"),
		},
		pkg: "./store/notifications", tests: "TestFeedGivesEachCommittedNotificationOnce",
	},
	{
		name:    "the deliveries of a paused endpoint are dropped",
		changes: []change{once("store/notifications/endpoints.go", "UPDATE deliveries SET attempts = 0, due_at = created_at\n", "UPDATE deliveries SET status = 'failed'\n")},
		pkg:     "./notify/delivery", tests: "TestAPausedEndpointLosesNothing",
	},
	{
		name:    "a deleted endpoint's id is used again",
		changes: []change{once("store/notifications/endpoints.go", "} else if deleted {\n", "} else if deleted && false {\n")},
		pkg:     "./store/notifications", tests: "TestADeletedEndpointsIDIsNotUsedAgain",
	},
	{
		name:    "a rotation of an older revision replaces the secret",
		changes: []change{once("store/notifications/endpoints.go", "if r.ExpectedRevision != 0 && r.ExpectedRevision != e.Revision {", "if r.ExpectedRevision > e.Revision {")},
		pkg:     "./store/notifications", tests: "TestARotationOfAnotherRevisionIsRefused",
	},
	{
		name:    "a delivery is given up at an endpoint that accepts nothing",
		changes: []change{once("notify/schedule.go", "case p.Attempts >= MaxAttempts && p.SucceededAt >= p.CreatedAt && p.SucceededAt > 0:", "case p.Attempts >= MaxAttempts:")},
		pkg:     "./notify", tests: "TestADeliveryFailsOnlyAtAnEndpointThatAcceptsOthers",
	},
	{
		name:    "a webhook reaches the server's own network",
		changes: []change{once("notify/delivery/client.go", " || !notify.MayReach(target.Addr(), o.Opened) {", " || !notify.MayReach(target.Addr(), o.Opened) && !target.Addr().IsLoopback() {")},
		pkg:     "./notify/delivery", tests: "TestPrivateReceiversAreNotReached",
	},
	{
		name:    "a change of an endpoint that changes nothing is a revision",
		changes: []change{once("notify/endpoint.go", "e.Description != was.Description || e.Status != was.Status {", "e.Description != was.Description || e.Status != \"\" {")},
		pkg:     "./notify", tests: "TestEndpointChanges",
	},
	{
		name:    "a redirect is followed",
		changes: []change{once("notify/delivery/client.go", "return http.ErrUseLastResponse }", "return nil }")},
		pkg:     "./notify/delivery", tests: "TestAnswersOfReceivers",
	},
	{
		name:    "a delivery that is missing is not found",
		changes: []change{once("store/verify/feed_walk.go", "if e.Next == n.Seq {\n			w.differs(", "if false {\n			w.differs(")},
		pkg:     "./store", tests: "TestVerifyNewFindsWhatIsNewInTheFeed",
	},
	{
		name:    "a member is mailed by two nodes",
		changes: []change{once("store/notifications/mails.go", "WHERE app_id = $1 AND mailed_seq = $2`)", "WHERE app_id = $1 AND mailed_seq >= $2`)")},
		pkg:     "./mail", tests: "TestPassesAtOnceMailOnce",
	},
	{
		name:    "a member is mailed what they may not read",
		changes: []change{once("tenancy/mails.go", "if !m.MayMail(topic) {", "if false {")},
		pkg:     "./tenancy", tests: "TestMembersChooseTheirMails",
	},
	{
		name:    "an expiring key is announced with every pass",
		changes: []change{once("store/keys.go", "AND NOT revoked AND expiry_announced_at IS NULL", "AND NOT revoked")},
		pkg:     "./payments/cashier", tests: "TestEveryTypeOfNotificationIsMade",
	},
	{
		name:    "an entry is not announced",
		changes: []change{once("store/internal/ledger/journal.go", "if err := tx.announce(ctx, p, e, before, after); err != nil {", "if err := tx.announce(ctx, Posting{}, e, before, after); err != nil {")},
		pkg:     "./store", tests: "TestEntriesAreAnnouncedOnce",
	},
	{
		name:    "a run of an endpoint's job starts deliveries until its deadline",
		changes: []change{once("notify/delivery/deliver.go", "ctx.Err() != nil || !d.options.Now().Before(end) {", "ctx.Err() != nil {")},
		pkg:     "./notify/delivery", tests: "TestALongRunStartsNoMoreDeliveries",
	},
	{
		name:    "the error of an attempt is as the receiver wrote it",
		changes: []change{once("notify/delivery/client.go", "time.Since(begun), clean(r.Error, maxError) }()", "time.Since(begun), r.Error }()")},
		pkg:     "./notify/delivery", tests: "TestAnErrorIsShortAndCanBeStored",
	},
	{
		name:    "applications share the connections to a host",
		changes: []change{once("notify/delivery/client.go", "				MaxIdleConns:           maxIdle,\n", "				MaxIdleConns:           maxIdle,\n				MaxConnsPerHost:        notify.MaxConcurrent * 4,\n")},
		pkg:     "./notify/delivery", tests: "TestDeliveriesToOneHostDoNotWaitForEachOther",
	},
	{
		name:    "late usage of an earlier period announces an allowance again",
		changes: []change{once("metering/alerts.go", "m.Period != a.Mark.Period && m.Period < a.Allowance.Period.End })", "m.Period != a.Mark.Period })")},
		pkg:     "./metering", tests: "TestAnAllowanceIsAnnouncedOnceAPeriod",
	},
	{
		name:    "a redelivery doesn't wait for the retention",
		changes: []change{once("store/notifications/requests.go", "	// The retention deletes notifications under the same lock.\n	if _, err := lock(ctx, tx); err != nil {\n		return 0, err\n	}\n", "")},
		pkg:     "./store/notifications", tests: "TestARedeliveryWaitsForTheRetention",
	},
	{
		name:    "a delivery without a notification is due for ever",
		changes: []change{once("store/notifications/deliveries.go", "SELECT d.due_at FROM deliveries d JOIN notifications n ON n.app_id = $1 AND n.id = d.notification_id\n", "SELECT d.due_at FROM deliveries d\n")},
		pkg:     "./store/notifications", tests: "TestADeliveryWithoutNotificationIsNotDue",
	},
	{
		name:    "lanes share their workers",
		changes: []change{once("jobs/notifier.go", "n.running[t] || n.busy[t.lane] == maxConcurrentApps {", "n.running[t] || len(n.running) == maxConcurrentApps {")},
		pkg:     "./jobs", tests: "TestOneApplicationNeverTakesMoreThanItsTurn",
	},
	{
		name:    "one application takes all slots of webhooks",
		changes: []change{once("jobs/detached.go", "l.taken[t.scope.AppID] >= l.perApp || ", "")},
		pkg:     "./jobs", tests: "TestAnApplicationHasItsShareOfDetachedJobs",
	},
	{
		name:    "only the first deliveries of an enabled endpoint start over",
		changes: []change{once("store/notifications/endpoints.go", "		if len(list) == MaxReset {\n", "		if len(list) > MaxReset {\n")},
		pkg:     "./store/notifications", tests: "TestWaitingDeliveriesStartOverInParts",
	},
	{
		name:    "an enabled endpoint waits for the next retry",
		changes: []change{once("store/notifications/deliveries.go", "(e.reset_after IS NOT NULL OR EXISTS (", "(EXISTS (")},
		pkg:     "./store/notifications", tests: "TestWaitingDeliveriesStartOverInParts",
	},
	{
		name:    "a late answer of the previous URL pauses an endpoint",
		changes: []change{once("store/notifications/deliveries.go", "outdated := attempt.URL != e.URL\n", "outdated := attempt.URL == \"\"\n")},
		pkg:     "./notify/delivery", tests: "TestAnEndpointThatMovesIsJudgedByItsNewURL",
	},
	{
		name:    "a new URL waits for the retries of the previous one",
		changes: []change{once("notify/endpoint.go", "	if e.URL != was.URL || e.Status == Enabled && was.Status != Enabled {\n", "	if e.Status == Enabled && was.Status != Enabled {\n")},
		pkg:     "./notify/delivery", tests: "TestANewURLGetsWhatWaitedAtOnce",
	},
	{
		name:    "a delivery job that fails runs again at once",
		changes: []change{once("notify/delivery/sequencer.go", "alsoFailing || !slices", "now > 0 || !slices")},
		pkg:     "./notify/delivery", tests: "TestAJobThatFailsIsNotEnqueuedAgainAtOnce",
	},
	{
		name:    "a key that a rotation revokes is not announced",
		changes: []change{once("store/keys.go", "err != nil || !k.Revoked {", "err != nil || !k.ReplacedBy.IsZero() {")},
		pkg:     "./store", tests: "TestKeysAndSubscriptionsAreAnnounced",
	},
	{
		name:    "a revoked key has the time of another clock",
		changes: []change{once("store/internal/pg/outbox.go", "list[i] = notify.New(notify.KeyRevoked, ids.ID{}, key, now)", "list[i] = notify.New(notify.KeyRevoked, ids.ID{}, key, min(now, key.RevokedAt))")},
		pkg:     "./store", tests: "TestKeysAndSubscriptionsAreAnnounced",
	},
	{
		name:    "a key that was revoked during a wait gets the page",
		changes: []change{once("api/notifications.go", "	return s.authenticate(&again)\n", "	return nil\n")},
		pkg:     "./api", tests: "TestFeed",
	},
}
