package main

// Bugs in how money comes in and goes back, and in the jobs that do it.
var paymentMutants = []mutant{
	{
		name:    "a sale that a restore has lost is ignored",
		changes: []change{once("payments/cashier/jobs.go", "if _, foreign := ids.Parse(ids.Checkout, metadata[metaCheckout]); foreign != nil || ", "if _, foreign := ids.Parse(ids.Checkout, metadata[metaCheckout]); foreign == nil || ")},
		pkg:     "./payments/cashier", tests: "TestASaleThatARestoreHasLostIsListed",
	},
	{
		name:    "a sale of another application is listed as lost",
		changes: []change{once("payments/cashier/jobs.go", "metadata[metaApp] != with.scope.AppID.Format(ids.Application) {", "metadata[metaApp] == \"\" {")},
		pkg:     "./payments/cashier", tests: "TestASaleThatARestoreHasLostIsListed",
	},
	{
		name:    "a failed top-up is sold to another customer",
		changes: []change{once("payments/cashier/checkout.go", "if run.ReplacedAt != 0 || customer != sold.CustomerID {", "if run.ReplacedAt != 0 || customer == \"none\" {")},
		pkg:     "./payments/cashier", tests: "TestAFailedTopUpIsDecidedAgain",
	},
	{
		name:    "a failed top-up is sold without a decision",
		changes: []change{once("payments/cashier/checkout.go", "err = billing.DecideTopUp(current, sold.Amount, sold.AmountCents, sold.Currency)", "_ = current")},
		pkg:     "./payments/cashier", tests: "TestAFailedTopUpIsDecidedAgain",
	},
	{
		name:    "an operation runs under the lease of a former identity",
		changes: []change{once("payments/cashier/operation.go", "if rec.Identity != r.identity {", "if rec.Identity == \"\" {")},
		pkg:     "./payments/cashier", tests: "TestAnOperationOfARenamedWalletIsNotResumedUnderItsOldIdentity",
	},
	{
		name:    "an unpaid subscription checkout is not open",
		changes: []change{once("store/payments/checkouts.go", ` || c.State == "pending" && c.URL != ""`, "")},
		pkg:     "./payments/cashier", tests: "TestASubscriptionCheckoutIsOpenUntilItIsPaidOrADebitIsProcessing",
	},
	{
		name:    "a refund that failed later stays in progress",
		changes: []change{once("views/page/support/refund.templ", "|| p.Confirming }", "|| p.State == billing.OperationDone }"), once("views/page/support/refund_templ.go", "|| p.Confirming }", "|| p.State == billing.OperationDone }")},
		pkg:     "./views/page/support", tests: "TestARefundIsShownAsWhatBecameOfIt",
	},
	{
		name:    "a refund is done before its confirmation is queued",
		changes: []change{once("payments/cashier/command_action.go", "\tif after.Object != \"\" {\n", "\tif after.Object == \"-\" {\n")},
		pkg:     "./payments/cashier", tests: "TestARefundIsInProgressUntilItIsConfirmed",
	},
	{
		name:    "a failed refund shows an error of the program",
		changes: []change{once("payments/cashier/operation_run.go", "cmp.Or(errorMessage(cause), cause.Error())", "cmp.Or(cause.Error(), errorMessage(cause))")},
		pkg:     "./payments/cashier", tests: "TestARefundThatFailedSaysWhyInPlainWords",
	},
	{
		name:    "a webhook changes the sandbox account before it is verified",
		changes: []change{once("payments/sandbox/server.go", "err := s.read(ctx, app, func(account *engine.Account, env engine.Env) error {", "err := s.update(ctx, app, func(account *engine.Account, env engine.Env) error {")},
		pkg:     "./payments/sandbox", tests: "TestSecretsAreReadWithoutChangingTheAccount",
	},
	{
		name:    "an event id of any length is stored",
		changes: []change{once("payments/cashier/webhook.go", "if len(field) > maxEventField || ", "if ")},
		pkg:     "./web/inbound", tests: "TestWebhooksWithOversizedFieldsAreIgnored",
	},
	{
		name: "a refund is sent again after it was made",
		changes: []change{
			once("payments/cashier/command_action.go", "return r.RefundedCents+r.DisputedCents >= charge.AmountCents, err", "return r.DisputedCents >= charge.AmountCents, err"),
			once("billing/refund.go", "\tcase left <= 0:\n", "\tcase left < 0:\n"),
		},
		pkg: "./payments/cashier", tests: "TestARequestedRefundReturnsMoneyAndTakesCreditsBack",
	},
	{
		name:    "a wallet with a paid subscription is erased",
		changes: []change{once("store/payments/erase.go", "\tcase open.Subscribed:\n", "\tcase open.Subscribed && open.Buying:\n")},
		pkg:     "./store", tests: "TestRefusedErasuresChangeNothing",
	},
	{
		name: "a payment credited each time that it is told",
		changes: []change{
			once("billing/topup.go", "\tif t.Status == TopUpPaid {\n", "\tif false {\n"),
			once("store/payments/payments.go", "\tfor _, p := range payments {\n\t\tmade, err",
				"\tfor _, p := range payments {\n\t\tp.Source.ID += ids.New().String()\n\t\tmade, err"),
		},
		pkg: "./payments/cashier", tests: "TestEveryPaymentCountsOnceHoweverOftenItIsReported",
	},
	{
		name:    "an attempt at a lease is cut short with its caller",
		changes: []change{once("payments/cashier/lease.go", "context.WithTimeout(context.WithoutCancel(ctx), leaseAttemptTimeout)", "context.WithTimeout(ctx, leaseAttemptTimeout)")},
		pkg:     "./payments/cashier", tests: "TestACallerWhoseTimeEndsWhileItWaitsIsToldOfTheOperation",
	},
	{
		name:    "a webhook that is not signed",
		changes: []change{once("payments/stripe/webhook.go", "\tif !signedBy(body, header, secrets) || !signedAt(header, now) {\n", "\tif !signedAt(header, now) {\n")},
		pkg:     "./payments/cashier", tests: "TestForgedStaleAndMisaddressedWebhooksDoNothing",
	},
	{
		name:    "a webhook of any age",
		changes: []change{once("payments/stripe/webhook.go", "Abs() <= tolerance", "Abs() >= 0")},
		pkg:     "./payments/cashier", tests: "TestForgedStaleAndMisaddressedWebhooksDoNothing",
	},
	{
		name:    "credits for an unpaid invoice",
		changes: []change{once("billing/project_invoices.go", "if invoice.Status != InvoicePaid || !invoice", "if !invoice")},
		pkg:     "./billing", tests: "TestOnlyPaidPeriodsGrant",
	},
	{
		name:    "a refund on top of what was refunded before",
		changes: []change{once("billing/clawback.go", "kind, difference(taken, target), target}", "kind, difference(0, target), target}")},
		pkg:     "./billing", tests: "TestClawback|TestClawbackConverges",
	},
	{
		name:    "a payment that a full wallet loses",
		changes: []change{once("store/payments/payments.go", "fits := billing.Fitting(held[0].Balances, p.Credits)", "fits := p.Credits[:len(p.Credits)+0*len(held)]")},
		pkg:     "./payments/cashier", tests: "TestAPaymentWithoutRoomIsSetAsideWithAnAlert",
	},
	{
		name:    "a top-up sold to a wallet that cannot hold it",
		changes: []change{once("payments/cashier/checkout.go", "billing.CheckRoom(s.Balances, []billing.Grant{bought})", "billing.CheckRoom(nil, []billing.Grant{bought})")},
		pkg:     "./payments/cashier", tests: "TestATopUpPastNineteenDigitsIsRefusedBeforeItIsPaid",
	},
	{
		name:    "a debt without a bound",
		changes: []change{once("metering/balance.go", "owed := min(amount-held, MaxAmount-b.Debt)", "owed := amount - held")},
		pkg:     "./payments/cashier", tests: "TestADebtIsBookedUpToNineteenDigits",
	},
	{
		name:    "a settled payment whose charge is not read",
		changes: []change{once("store/payments/payments.go", "\t\tif p.ChargeID == \"\" {\n", "\t\tif p.ChargeID != \"?\" {\n")},
		pkg:     "./payments/cashier", tests: "TestARecoveredTopUpHearsOfItsRefund",
	},
	{
		name:    "a refund called a dispute",
		changes: []change{once("billing/clawback.go", "\tcase refunds && disputes:\n", "\tcase false:\n")},
		pkg:     "./billing", tests: "TestClawback",
	},
	{
		name:    "a renewal charged beside the upgrade that replaced it",
		changes: []change{once("billing/project_renewals.go", "\t\t\treturn renewal.AmountDue > 0\n", "\t\t\treturn false\n"), once("billing/project_renewals.go", "renewal.PaidAt >= upgrade.invoice.PaidAt", "false")},
		pkg:     "./payments/cashier", tests: "TestAnUpgradeBeforeTheRenewalIsChargedReplacesIt",
	},
	{
		name:    "a webhook with a time beside the one that was signed",
		changes: []change{once("payments/stripe/webhook.go", "if len(times) != 1 {", "if len(times) == 0 {")},
		pkg:     "./payments/cashier", tests: "TestScenario56_OnlyWhatTheAccountSignedIsTaken",
	},
	{
		name:    "a cancellation that leaves a later date",
		changes: []change{once("billing/provider.go", "s.CancelAt > 0 && s.CancelAt <= s.Period.End", "s.CancelAt > 0")},
		pkg:     "./payments/cashier", tests: "TestCancellingComesBeforeALaterDateOfCancellation",
	},
	{
		name:    "a plan sold at a price of another amount",
		changes: []change{once("payments/cashier/sync_plan.go", ", err == nil && price.Price != plan.Price:", ":")},
		pkg:     "./payments/cashier", tests: "TestAPlanIsSoldAtItsOwnAmount",
	},
	{
		name:    "a renewal that pending items hide",
		changes: []change{once("payments/stripe/subscriptions.go", "if hidesPeriod(i, invoice) && long < maxLongInvoices {", "if false {")},
		pkg:     "./payments/stripe", tests: "TestThePlanOfAnInvoiceIsFoundBehindOtherLines",
	},
	{
		name:    "a refund that takes back what the customer's balance has paid",
		changes: []change{once("billing/clawback.go", "uint64(max(0, p.BalanceCents))", "0")},
		pkg:     "./payments/cashier", tests: "TestARefundLeavesWhatTheBalanceHasPaid",
	},
	{
		name:    "a cancellation that pays for another period",
		changes: []change{once("payments/cashier/command_cancel.go", "if renewal = s.UnpaidRenewal(); renewal == \"\" {", "if renewal = s.UnpaidRenewal(); true {")},
		pkg:     "./payments/cashier", tests: "TestCancellingBeforeTheRenewalIsChargedEndsWithoutACharge",
	},
	{
		name:    "a paid purchase that gives way to a free subscription",
		changes: []change{once("billing/project.go", "if p.current.Conflicting.Terms.Free() && !p.current.Subscription.Terms.Free() {", "if false {")},
		pkg:     "./payments/cashier", tests: "TestAPaidPurchaseReplacesAFreeSubscription",
	},
	{
		name:    "terms that the provider's present price decides",
		changes: []change{once("billing/project.go", "cmp.Compare(a.invoice.Reason.rank(), b.invoice.Reason.rank()),", "cmp.Compare(b.invoice.Reason.rank(), a.invoice.Reason.rank()),")},
		pkg:     "./payments/cashier", tests: "TestADowngradeWaitsForItsPaymentAfterAnUpgradeInTheSameSecond",
	},
	{
		name:    "a refusal that is tried again for ever",
		changes: []change{once("payments/cashier/jobs.go", "Stop: isRefusal(err) && !isPeriodic(kind)", "Stop: false")},
		pkg:     "./payments/cashier", tests: "TestWhatTheProviderRefusesIsNotTriedAgainByItself",
	},
	{
		name:    "a lease that is not renewed",
		changes: []change{once("payments/cashier/lease_renewal.go", "\tif every < 0 {\n", "\tif true {\n")},
		pkg:     "./payments/cashier", tests: "TestAHolderThatLostItsLeaseIsStopped",
	},
	// The next four are seeded for the model: it has to find by drawing what once was a
	// fault that people met.
	{
		name:    "a payment that a full wallet loses, drawn",
		changes: []change{once("store/payments/payments.go", "fits := billing.Fitting(held[0].Balances, p.Credits)", "fits := p.Credits[:len(p.Credits)+0*len(held)]")},
		pkg:     "./payments/cashier", tests: "TestBooksMatchWhatTheProviderTook",
	},
	{
		name:    "a renewal charged beside the upgrade that replaced it, drawn",
		changes: []change{once("billing/project_renewals.go", "\t\t\treturn renewal.AmountDue > 0\n", "\t\t\treturn false\n"), once("billing/project_renewals.go", "renewal.PaidAt >= upgrade.invoice.PaidAt", "false")},
		pkg:     "./payments/cashier", tests: "TestBooksMatchWhatTheProviderTook",
	},
	{
		name:    "a paid purchase that gives way to a free subscription, drawn",
		changes: []change{once("billing/project.go", "if p.current.Conflicting.Terms.Free() && !p.current.Subscription.Terms.Free() {", "if false {")},
		pkg:     "./payments/cashier", tests: "TestBooksMatchWhatTheProviderTook",
	},
	{
		name:    "terms that the provider's present price decides, drawn",
		changes: []change{once("billing/project.go", "cmp.Compare(a.invoice.Reason.rank(), b.invoice.Reason.rank()),", "cmp.Compare(b.invoice.Reason.rank(), a.invoice.Reason.rank()),")},
		pkg:     "./payments/cashier", tests: "TestBooksMatchWhatTheProviderTook",
	},
	{
		name:    "staying charged for although no renewal is billed",
		changes: []change{once("billing/project_changes.go", "\tbilled = billed && priceID", "\tbilled = next == nil && priceID")},
		pkg:     "./payments/cashier", tests: "TestStayingAtAPriceThatWasChangedAtTheProviderChargesNothing",
	},
	{
		name:    "a billed downgrade that a later one hides",
		changes: []change{once("billing/project_changes.go", "\tbilled = billed && priceID", "\tbilled = billed && next == nil && priceID")},
		pkg:     "./payments/cashier", tests: "TestADowngradeBesideABilledOneAnswersWhatIsCharged",
	},
	{
		name:    "a cancellation that a bank debit blocks while the plan renews",
		changes: []change{once("payments/cashier/command_change.go", "&& !session.Paid && run.rec.Parameters.Cancels():", "&& false:")},
		pkg:     "./payments/cashier", tests: "TestCancellingWhileAnUpgradeIsDebitedStopsTheRenewal",
	},
	{
		name:    "staying charged for after the downgrade was",
		changes: []change{once("payments/cashier/command_change.go", "\t\t\tif sameTerms && s.UnpaidRenewal() == \"\" {\n", "\t\t\tif false {\n")},
		pkg:     "./payments/cashier", tests: "TestStayingAfterTheBilledDowngradeWasChargedChargesNothing",
	},
	{
		name:    "a debited renewal that is never read again",
		changes: []change{once("payments/cashier/command_action.go", "after.DueAt = run.now + overdueInterval", "after.Object = \"\"")},
		pkg:     "./payments/cashier", tests: "TestARenewalThatIsBeingDebitedIsReadAgainWithoutAReport",
	},
	{
		name:    "a late payment that is refunded unseen",
		changes: []change{once("billing/project_renewals.go", "\t\tp.addAlert(PaidLate, bought.invoice.ID)\n", "")},
		pkg:     "./billing", tests: "TestARenewalPaidAfterTheEndIsRefundedWithAnAlert",
	},
	{
		name:    "a void that is not asked for again after a debit has failed",
		changes: []change{once("store/payments/operations.go", "WHERE provider_ops.state = 'done' AND", "WHERE false AND")},
		pkg:     "./payments/cashier", tests: "TestARenewalWhoseDebitFailsAfterAnUpgradeIsVoided",
	},
	{
		name:    "a refund booked from what another movement was to reach",
		changes: []change{once("store/payments/payments.go", "delta := m.From(taken)", "delta := m.Delta"), once("billing/clawback.go", "\tcase refunds && r.DisputedCents < p.DisputedCents:\n", "\tcase false:\n")},
		pkg:     "./store", tests: "TestRefundsAndDisputes",
	},
	{
		name:    "a renewal paid in the second of the upgrade",
		changes: []change{once("billing/project_renewals.go", "renewal.PaidAt >= upgrade.invoice.PaidAt", "renewal.PaidAt > upgrade.invoice.PaidAt")},
		pkg:     "./billing", tests: "TestARenewalBesideAnUpgradeIsChargedOnce",
	},
	{
		name:    "a renewal that the customer's balance pays beside an upgrade",
		changes: []change{once("billing/project_renewals.go", "paid := renewal.AmountPaid + renewal.FromBalance", "paid := renewal.AmountPaid")},
		pkg:     "./billing", tests: "TestARenewalBesideAnUpgradeIsChargedOnce",
	},
	{
		name:    "a renewal kept that was debited after its subscription was replaced",
		changes: []change{once("billing/project_invoices.go", "late, byCheckout := p.collectedLate(paid.invoice), p.replacedByCheckout(paid.invoice)", "late, byCheckout := false, false")},
		pkg:     "./payments/cashier", tests: "TestARenewalDebitedAfterItsSubscriptionWasReplacedIsRefunded",
	},
	{
		name:    "a billed downgrade that is said to be called off",
		changes: []change{once("billing/decide.go", "\t\tif current.downgradeBilled() {\n", "\t\tif false {\n")},
		pkg:     "./payments/cashier", tests: "TestStayingWhileADowngradeIsBilledPaysForThePlanAgain",
	},
	{
		name:    "an archived price that keeps its subscriber",
		changes: []change{once("payments/cashier/command_change.go", "\tif err != nil || price.Active {\n", "\tif err != nil || price.ID != \"\" {\n")},
		pkg:     "./payments/cashier", tests: "TestASubscriberAtAnEditedPriceCanDowngrade",
	},
	{
		name:    "an upgrade by bank debit that is refused",
		changes: []change{once("payments/cashier/command_change.go", "|| stripe.Is(err, stripe.CannotWait) {", "{")},
		pkg:     "./payments/cashier", tests: "TestACustomerWhoPaysByBankDebitUpgradesOnAPage",
	},
	{
		name:    "a balance that paid for a replaced renewal is kept",
		changes: []change{once("billing/project_renewals.go", "\tif invoice.FromBalance > 0 {\n", "\tif false {\n")},
		pkg:     "./payments/cashier", tests: "TestABalanceThatPaidForAReplacedRenewalIsCreditedBack",
	},
	{
		name: "a balance that is credited back twice",
		changes: []change{
			once("payments/stripe/customers.go", ".Metadata[creditedInvoice] == invoiceID {", ".Metadata[creditedInvoice] == \"\" && false {"),
			once("billing/operation.go", "string(o.Step) + \":\" + strconv.Itoa(o.Attempt)", "string(o.Step) + \":\" + strconv.Itoa(o.Attempt) + ids.New().String()"),
		},
		pkg: "./payments/cashier", tests: "TestABalanceThatPaidForAReplacedRenewalIsCreditedBack",
	},
	{
		name:    "a renewal kept beside the upgrade that was debited at the same time",
		changes: []change{once("billing/project_renewals.go", "\t\tif byCheckout && bought.invoice.AmountPaid > 0 {\n", "\t\tif false {\n")},
		pkg:     "./payments/cashier", tests: "TestOfTwoDebitsAroundAPeriodsEndTheUpgradeIsKept",
	},
	{
		name:    "a price that is archived while a page sells it",
		changes: []change{once("store/payments/plan_jobs.go", "SET due_at = greatest(due_at, $3), version", "SET due_at = least(due_at, $3), version")},
		pkg:     "./payments/cashier", tests: "TestAPageOutlivesNoPriceThatItSells",
	},
	{
		name:    "the audit log keeps the identity of a customer who tops up",
		changes: []change{once("web/support/wallet_topup.go", "w.ID.Format(ids.Wallet), audit", "map[ids.ID]string{w.ID: w.Identity}[w.ID], audit")},
		pkg:     "./web", tests: "TestPlanActionsAreAuditedByTheWalletsID",
	},
	{
		name:    "secrets of webhooks are read without a bound",
		changes: []change{once("web/inbound/webhooks.go", "\tdefer leave()\n\treturn read()\n", "\tleave()\n\treturn read()\n")},
		pkg:     "./web/inbound", tests: "TestUnsignedWebhooksAreBounded",
	},
	{
		name:    "a webhook without signature is looked up",
		changes: []change{once("web/inbound/webhooks.go", "if signature == \"\" {", "if signature == \"none\" {")},
		pkg:     "./web/inbound", tests: "TestUnsignedWebhooksAreBounded|TestWebhooksWithoutADatabase",
	},
	{
		name:    "a lease whose row is locked is an error",
		changes: []change{once("store/queue/leases.go", "if pg.WasRolledBack(err) || pg.SQLState(err) == pg.QueryCanceled {", "if false {")},
		pkg:     "./store", tests: "TestALeaseThatCannotBeLockedIsNotHeld",
	},
	{
		name:    "a lease that is not compared",
		changes: []change{once("store/queue/leases.go", "AND name = $2 AND fence = $3 FOR SHARE", "AND name = $2 AND $3::bigint > 0 FOR SHARE")},
		pkg:     "./store", tests: "TestAFenceThatWasPassedStoresNothing",
	},
	{
		name:    "a job that two nodes run at once",
		changes: []change{once("store/queue/claim.go", "AND due_at <= $2 AND leased_until <= $3 AND", "AND due_at <= $2 AND $3::bigint > 0 AND")},
		pkg:     "./store", tests: "TestClaimedJobsAreLeased",
	},
	{
		name:    "a job that a node ends after it lost the lease",
		changes: []change{once("store/queue/claim.go", "AND version = $4 AND lease_id = $5`)", "AND version = $4 AND $5::uuid IS NOT NULL`)")},
		pkg:     "./store", tests: "TestClaimedJobsAreLeased",
	},
	{
		name:    "a job whose second request is lost while it runs",
		changes: []change{once("store/queue/claim.go", "AND object = $3 AND version = $4 AND lease_id = $5`)", "AND object = $3 AND $4::uuid IS NOT NULL AND lease_id = $5`)")},
		pkg:     "./store", tests: "TestClaimedJobsAreLeased",
	},
	{
		name:    "a periodic task that two nodes run",
		changes: []change{once("store/queue/periodic.go", " AND leased_until <= ` + databaseMillis + `", "")},
		pkg:     "./store", tests: "TestAPeriodicTaskRunsOnOneNode",
	},
	{
		name:    "jobs that a stopping node keeps",
		changes: []change{once("jobs/drain.go", "if ended.Load() < int64(len(batch.Jobs)) {", "if false {")},
		pkg:     "./jobs", tests: "TestAStoppedNodeReleasesJobsThatItDidNotStart",
	},
	{
		name:    "an upgrade is charged after the one it voids was paid",
		changes: []change{once("payments/cashier/command_change.go", "voids != \"\" && s.PriceID == voids {", "voids == \"-\" {")},
		pkg:     "./payments/cashier", tests: "TestAnUpgradeIsNotChargedOnceTheOneItVoidsIsPaid",
	},
	{
		name:    "a refund at a retired account stays in progress",
		changes: []change{once("payments/cashier/command_action.go", "if errors.Is(err, errAccountRetired) {", "if errors.Is(err, errAccountRetired) && rec.Kind == \"\" {")},
		pkg:     "./payments/cashier", tests: "TestARefundAtARetiredAccountFails",
	},
	{
		name:    "an unknown price is listed for one customer only",
		changes: []change{once("billing/project_invoices.go", "p.addAlert(UnknownPrice, paid.invoice.ID)", "p.addAlert(UnknownPrice, paid.line.PriceID)")},
		pkg:     "./payments/cashier", tests: "TestAnUnknownPriceIsListedForEachCustomer",
	},
	{
		name:    "a resolved alert stays resolved when its problem returns",
		changes: []change{once("store/payments/alerts.go", "alert.Kind.Recurs() {", "alert.Kind == \"\" {")},
		pkg:     "./payments/cashier", tests: "TestAKeyThatIsRefusedIsForAPersonToSee|TestARefundThatFailsAgainIsListedAgain",
	},
	{
		name:    "a repeated report opens a resolved alert again",
		changes: []change{once("store/payments/payments.go", "if moved < delta.Amount && !repeated {", "if moved < delta.Amount && (repeated || !repeated) {")},
		pkg:     "./payments/cashier", tests: "TestADebtIsBookedUpToNineteenDigits",
	},
	{
		name:    "the preview of a downgrade names a renewal that is billed",
		changes: []change{once("billing/preview.go", "if s.Local() || now < s.Period.End && !s.downgradeBilled() {", "if s.Local() || now > 0 {")},
		pkg:     "./billing", tests: "TestThePreviewOfADowngradeWhileARenewalWaitsNamesTheNextOne",
	},
	{
		name:    "a missing path ends a subscription",
		changes: []change{once("payments/stripe/problem.go", "== http.StatusNotFound && apiErr.Code == sdk.ErrorCodeResourceMissing", "== http.StatusNotFound")},
		pkg:     "./payments/cashier", tests: "TestASubscriptionThatTheProviderDeletedHasEnded",
	},
	{
		name:    "a live subscription that is not found ends",
		changes: []change{once("payments/cashier/sync_subscription.go", "if with.Live {", "if with.Live && id == \"\" {")},
		pkg:     "./payments/cashier", tests: "TestASubscriptionThatTheProviderDeletedHasEnded",
	},
	{
		name:    "a deleted customer is used for ever",
		changes: []change{once("payments/cashier/checkout.go", "if stripe.CustomerGone(err) {\n\t\tif err", "if err == errTooLate {\n\t\tif err")},
		pkg:     "./payments/cashier", tests: "TestACustomerThatTheProviderDeletedIsForgotten",
	},
}
