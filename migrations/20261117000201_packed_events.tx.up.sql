-- Usage events of past months in blocks: one row has up to 1,000 events of a wallet, a column
-- of an event is an array. 'purser pack' moves events here; nothing else writes these tables.
CREATE TABLE packed_events (
  app_id        uuid     NOT NULL,
  wallet_id     uuid     NOT NULL,
  last_seq      bigint   NOT NULL,
  first_seq     bigint   NOT NULL,
  org_id        uuid     NOT NULL,
  events        integer  NOT NULL,
  first_tx      uuid     NOT NULL, -- the smallest of tx_ids
  last_tx       uuid     NOT NULL,
  seqs          bigint[] NOT NULL,
  tx_ids        uuid[]   NOT NULL,
  event_ids     uuid[]   NOT NULL, -- only events with a UUIDv7 are packed
  key_ids       uuid[]   NOT NULL,
  price_numbers bigint[] NOT NULL,
  quantities    bigint[] NOT NULL,
  created_ats   bigint[] NOT NULL,
  amounts       numeric[] NOT NULL,
  balances_after numeric[] NOT NULL,
  -- NULL when no event of the block has a value.
  occurred_ats       bigint[],
  period_starts      bigint[],
  period_ends        bigint[],
  deduplicated_froms uuid[],
  entity_ids         text[] COLLATE "C",
  debts              numeric[],
  quoteds            numeric[],
  basis_points       integer[],
  allowance_limits   bigint[],
  allowance_useds    bigint[],
  allowance_starts   bigint[],
  allowance_ends     bigint[],
  allowance_overages text[],
  PRIMARY KEY (app_id, wallet_id, last_seq)
);

--bun:split

ALTER TABLE packed_events ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE packed_events FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON packed_events
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT ON packed_events TO purser_app;

--bun:split

-- A run of 'purser pack'. An event id with a time before the end of the last run may be packed.
CREATE TABLE packed_runs (
  app_id     uuid    NOT NULL,
  run        bigint  NOT NULL,
  org_id     uuid    NOT NULL,
  before     bigint  NOT NULL, -- its events were created earlier, and their ids have an earlier time
  scanned    uuid    NOT NULL, -- event ids up to this one are in packed_ids
  indexed    boolean NOT NULL,
  done       boolean NOT NULL,
  last_tx    uuid    NOT NULL, -- the latest transaction that was packed
  events     bigint  NOT NULL,
  started_at bigint  NOT NULL,
  PRIMARY KEY (app_id, run)
);

--bun:split

ALTER TABLE packed_runs ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE packed_runs FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON packed_runs
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT ON packed_runs TO purser_app;

--bun:split

-- Where packed events are: blocks of their ids in order, for each run by itself.
CREATE TABLE packed_ids (
  app_id  uuid       NOT NULL,
  run     bigint     NOT NULL,
  last_id uuid       NOT NULL,
  org_id  uuid       NOT NULL,
  ids     uuid[]     NOT NULL,
  wallet_ids uuid[]  NOT NULL, -- each once
  refs    smallint[] NOT NULL, -- the place of an id's wallet in wallet_ids
  seqs    bigint[]   NOT NULL,
  PRIMARY KEY (app_id, run, last_id)
);

--bun:split

-- A block is read for each id that is looked up, so it stays in one page.
ALTER TABLE packed_ids ALTER COLUMN ids SET STORAGE PLAIN, ALTER COLUMN wallet_ids SET STORAGE PLAIN,
  ALTER COLUMN refs SET STORAGE PLAIN, ALTER COLUMN seqs SET STORAGE PLAIN;

--bun:split

ALTER TABLE packed_ids ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE packed_ids FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON packed_ids
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT ON packed_ids TO purser_app;
