-- How much of a payment the customer's balance at the provider has paid, beside amount_cents.
ALTER TABLE provider_payments ADD COLUMN balance_cents bigint NOT NULL DEFAULT 0;
