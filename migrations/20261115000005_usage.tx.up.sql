-- What the engine needs of a wallet's subscription: whether its terms hold, its
-- period, and the terms, which never change with the plan they came from.
CREATE TABLE subscriptions (
  app_id       uuid   NOT NULL,
  id           uuid   NOT NULL,
  org_id       uuid   NOT NULL,
  wallet_id    uuid   NOT NULL,
  status       text   NOT NULL,
  period_start bigint NOT NULL,
  period_end   bigint NOT NULL,
  terms        jsonb  NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT subscription_belongs_to_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id),
  CONSTRAINT status_is_known CHECK (status IN ('active', 'trialing', 'past_due', 'unpaid', 'paused', 'incomplete', 'canceled')),
  CONSTRAINT period_is_not_empty CHECK (period_start < period_end)
);

--bun:split

-- A wallet has one subscription at a time; those that never began or have ended
-- do not count.
CREATE UNIQUE INDEX wallet_has_one_live_subscription ON subscriptions (app_id, wallet_id)
  WHERE status IN ('active', 'trialing', 'past_due', 'unpaid', 'paused');

--bun:split

ALTER TABLE subscriptions ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE subscriptions FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON subscriptions
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON subscriptions TO purser_app;

--bun:split

-- Every use that was accepted or deduplicated, for ever: the event id is unique
-- in its application without end. The row is also the journal entry of its charge.
-- It is written some ten thousand times a second, so it has two indexes and no
-- foreign keys, and what is rare or follows from other columns is NULL.
CREATE TABLE usage_events (
  app_id            uuid          NOT NULL,
  org_id            uuid          NOT NULL,
  tx_id             uuid          NOT NULL, -- also the id of the request that brought it
  wallet_id         uuid          NOT NULL,
  key_id            uuid          NOT NULL,
  seq               bigint        NOT NULL, -- counts the wallet's entries, with those of the journal
  price_number      bigint        NOT NULL, -- of the feature's revision, in prices
  quantity          bigint        NOT NULL,
  created_at        bigint        NOT NULL,
  occurred_at       bigint,                 -- NULL when it is created_at
  period_start      bigint,                 -- of deduplication
  period_end        bigint,
  allowance_limit   bigint,                 -- NULL when no limit counted the use
  allowance_used    bigint,                 -- before the use
  allowance_start   bigint,
  allowance_end     bigint,
  basis_points      integer,                -- NULL for the list price
  amount_nanocredits numeric(19,0) NOT NULL,
  balance_after     numeric(19,0) NOT NULL,
  debt_after        numeric(19,0),          -- NULL for none
  quoted_nanocredits numeric(19,0),         -- NULL when it is the amount, or was not given
  deduplicated_from uuid,
  allowance_overage text,
  event_id          bytea         NOT NULL, -- the caller's text, or a zero and the UUID that it spells
  entity_id         text          COLLATE "C",
  CONSTRAINT event_has_its_place_in_the_wallet UNIQUE (app_id, wallet_id, seq),
  CONSTRAINT charge_is_not_negative CHECK (amount_nanocredits >= 0),
  CONSTRAINT event_leaves_no_overdraft CHECK (balance_after >= 0)
);

--bun:split

-- Of two indexes that look alike to it, as they do while there are no rows, the
-- planner takes the newer one. Events are looked up by this one.
ALTER TABLE usage_events ADD CONSTRAINT event_id_is_unique_in_its_application PRIMARY KEY (app_id, event_id);

--bun:split

ALTER TABLE usage_events ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_events FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_events
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT ON usage_events TO purser_app;

--bun:split

-- Finds a transaction by its id for almost nothing: rows are added in the order
-- in which ids are made.
CREATE INDEX usage_events_by_transaction ON usage_events USING brin (tx_id) WITH (pages_per_range = 32, autosummarize = on);

--bun:split

-- How much of a limit was used in a period.
CREATE TABLE counters (
  app_id       uuid   NOT NULL,
  wallet_id    uuid   NOT NULL,
  feature_id   uuid   NOT NULL,
  period_start bigint NOT NULL,
  period_end   bigint NOT NULL,
  org_id       uuid   NOT NULL,
  used         bigint NOT NULL,
  PRIMARY KEY (app_id, wallet_id, feature_id, period_start, period_end),
  CONSTRAINT used_is_not_negative CHECK (used >= 0)
) WITH (fillfactor = 75);

--bun:split

ALTER TABLE counters ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE counters FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON counters
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON counters TO purser_app;

--bun:split

-- What was charged once and is free until its period ends.
CREATE TABLE billed_periods (
  app_id       uuid   NOT NULL,
  wallet_id    uuid   NOT NULL,
  feature_id   uuid   NOT NULL,
  period_start bigint NOT NULL,
  period_end   bigint NOT NULL,
  entity_id    text   COLLATE "C" NOT NULL, -- empty for none, which is an entity of its own
  org_id       uuid   NOT NULL,
  tx_id        uuid   NOT NULL,
  CONSTRAINT period_is_billed_once PRIMARY KEY (app_id, wallet_id, feature_id, period_start, period_end, entity_id)
);

--bun:split

ALTER TABLE billed_periods ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE billed_periods FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON billed_periods
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT ON billed_periods TO purser_app;
