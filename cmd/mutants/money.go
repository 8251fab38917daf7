package main

// Bugs in how money comes in and goes back.
var moneyMutants = []mutant{
	{
		name: "a payment credited each time that it is told",
		changes: []change{
			once("billing/topup.go", "\tif t.Status == TopUpPaid {\n", "\tif false {\n"),
			once("store/billing_payments.go", "\tfor _, p := range payments {\n\t\tmade, err",
				"\tfor _, p := range payments {\n\t\tp.Source.ID += ids.New().String()\n\t\tmade, err"),
		},
		pkg: "./billing/cashier", tests: "TestEveryPaymentCountsOnceHoweverOftenItIsTold",
	},
	{
		name:    "a lease that nobody compares",
		changes: []change{once("store/provider_leases.go", "AND name = $2 AND fence = $3 FOR SHARE", "AND name = $2 AND $3::bigint > 0 FOR SHARE")},
		pkg:     "./store", tests: "TestAFenceThatWasPassedStoresNothing",
	},
	{
		name:    "a webhook that nobody has signed",
		changes: []change{once("billing/stripe/webhook.go", "\tif !signedBy(body, header, secrets) || !signedAt(header, now) {\n", "\tif !signedAt(header, now) {\n")},
		pkg:     "./billing/cashier", tests: "TestForgedStaleAndMisaddressedWebhooksDoNothing",
	},
	{
		name:    "a webhook of any age",
		changes: []change{once("billing/stripe/webhook.go", "Abs() <= tolerance", "Abs() >= 0")},
		pkg:     "./billing/cashier", tests: "TestForgedStaleAndMisaddressedWebhooksDoNothing",
	},
	{
		name:    "credits for an invoice that nobody has paid",
		changes: []change{once("billing/project_invoices.go", "if invoice.Status != InvoicePaid || !invoice", "if !invoice")},
		pkg:     "./billing", tests: "TestOnlyPaidPeriodsGrant",
	},
	{
		name:    "a refund on top of what was refunded before",
		changes: []change{once("billing/clawback.go", "kind, difference(taken, aim)}", "kind, difference(0, aim)}")},
		pkg:     "./billing", tests: "TestClawback|TestClawbackConverges",
	},
	{
		name:    "an allowance that verification does not count again",
		changes: []change{once("store/verify_proof.go", "before != e.used.value {", "false {")},
		pkg:     "./store", tests: "TestVerifyNewFindsAnAllowanceThatWasHandedOutAgain",
	},
	{
		name:    "a journal whose seal is not compared",
		changes: []change{once("store/verify_proof.go", "p.seq == p.sealedSeq && p.seal != p.stored", "false")},
		pkg:     "./store", tests: "TestVerifyFindsEveryCorruption",
	},
	{
		name:    "a seal over entries that differ",
		changes: []change{once("store/verify_seal.go", "r.proof.known && !r.proof.broken &&", "r.proof.known &&")},
		pkg:     "./store", tests: "TestVerifyNewFindsADifferenceUntilItIsRepaired",
	},
	{
		name:    "a debt that is forgotten",
		changes: []change{once("metering/balance.go", "b.Debt.Add(amount - held)", "b.Debt.Add(0)")},
		pkg:     "./metering", tests: "TestTakeBack|TestBalanceIsOneNumber",
	},
}
