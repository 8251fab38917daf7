-- What a write of one row costs beyond the row: Postgres reads a table's own rules
-- and its policy again for every statement, whichever columns that names. A rule
-- about one value therefore belongs to the value's type, which is read once for a
-- connection and asked for what is assigned.
CREATE DOMAIN nanocredits AS numeric(19,0) CONSTRAINT amount_is_not_negative CHECK (VALUE >= '0');

--bun:split

-- A writer that expected another version writes -1, and so fails as a whole.
CREATE DOMAIN wallet_version AS bigint CONSTRAINT version_was_expected CHECK (VALUE >= 0);

--bun:split

CREATE DOMAIN billing_interval AS text CONSTRAINT billing_interval_is_known CHECK (VALUE IN ('day', 'week', 'month'));

--bun:split

-- That a billing period is whole is left to the one function that writes it, and to verify.
ALTER TABLE wallets
  DROP CONSTRAINT version_was_expected,
  DROP CONSTRAINT billing_interval_is_known,
  DROP CONSTRAINT billing_period_is_whole,
  ALTER COLUMN version TYPE wallet_version,
  ALTER COLUMN billing_interval TYPE billing_interval;

--bun:split

-- That nothing is held while in debt is left to verify: a charge writes no debt.
ALTER TABLE balances
  DROP CONSTRAINT amount_is_not_negative,
  DROP CONSTRAINT debt_is_not_negative,
  DROP CONSTRAINT nothing_is_held_while_in_debt,
  ALTER COLUMN amount_nanocredits TYPE nanocredits,
  ALTER COLUMN debt_nanocredits TYPE nanocredits;

--bun:split

ALTER TABLE usage_events
  DROP CONSTRAINT charge_is_not_negative,
  DROP CONSTRAINT event_leaves_no_overdraft,
  ALTER COLUMN amount_nanocredits TYPE nanocredits,
  ALTER COLUMN balance_after TYPE nanocredits,
  ALTER COLUMN debt_after TYPE nanocredits,
  ALTER COLUMN quoted_nanocredits TYPE nanocredits;

--bun:split

-- A transaction speaks for one application, so the policies compare one text with
-- another. They do not compare ids: the planner would take that for a second
-- condition on the index, and read a whole application.
DO $$
DECLARE
  guarded name;
BEGIN
  FOR guarded IN SELECT tablename FROM pg_policies WHERE schemaname = 'public' AND policyname = 'tenant' LOOP
    EXECUTE format('ALTER POLICY tenant ON %I USING (app_id::text = current_setting(''purser.app_id'', true))', guarded);
  END LOOP;
END
$$;
