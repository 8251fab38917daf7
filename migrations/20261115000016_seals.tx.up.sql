-- How far the entries of each wallet were verified, in the order in which they
-- were committed: a wallet's entries are numbered under its lock. The seal is a
-- hash over the wallet and all entries up to there, and the arrays are the
-- balances after the last of them, so that the next pass reads only newer entries.
-- The rows are written by verification alone, never by a charge.
CREATE TABLE wallet_seals (
  app_id    uuid            NOT NULL,
  wallet_id uuid            NOT NULL,
  org_id    uuid            NOT NULL,
  seq       bigint          NOT NULL, -- of the last verified entry
  seal      bytea           NOT NULL,
  sealed_at bigint          NOT NULL,
  billed    bigint          NOT NULL, -- deduplication periods that were charged so far
  credit_ids uuid[]         NOT NULL,
  amounts   numeric(19,0)[] NOT NULL,
  debts     numeric(19,0)[] NOT NULL,
  PRIMARY KEY (app_id, wallet_id),
  CONSTRAINT seal_is_sha256 CHECK (length(seal) = 32),
  CONSTRAINT sealed_entries_are_counted CHECK (seq > 0),
  CONSTRAINT every_sealed_credit_has_a_balance CHECK (cardinality(credit_ids) = cardinality(amounts) AND cardinality(credit_ids) = cardinality(debts))
);

--bun:split

ALTER TABLE wallet_seals ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE wallet_seals FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON wallet_seals
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON wallet_seals TO purser_app;

--bun:split

-- What the verified events of a wallet add up to in each allowance period. The
-- counters themselves cannot serve for this: one that was reset would confirm itself.
CREATE TABLE sealed_counters (
  app_id       uuid   NOT NULL,
  wallet_id    uuid   NOT NULL,
  feature_id   uuid   NOT NULL,
  period_start bigint NOT NULL,
  period_end   bigint NOT NULL,
  org_id       uuid   NOT NULL,
  used         bigint NOT NULL,
  PRIMARY KEY (app_id, wallet_id, feature_id, period_start, period_end)
);

--bun:split

ALTER TABLE sealed_counters ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE sealed_counters FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON sealed_counters
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON sealed_counters TO purser_app;
