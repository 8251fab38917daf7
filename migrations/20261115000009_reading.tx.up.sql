-- What people look at is counted apart from the books: nodes count in memory and
-- add here every few seconds, so that no use waits for a figure. A node that is
-- killed takes its last seconds of figures with it, and nothing of the books.
-- Days are UTC, by the application's clock.
CREATE TABLE usage_days (
  app_id              uuid          NOT NULL,
  day                 bigint        NOT NULL, -- its first millisecond
  feature_id          uuid          NOT NULL,
  credit_id           uuid          NOT NULL,
  org_id              uuid          NOT NULL,
  accepted            bigint        NOT NULL,
  deduplicated        bigint        NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL, -- a sum over wallets, which no wallet's limit holds
  PRIMARY KEY (app_id, day, feature_id, credit_id)
);

--bun:split

ALTER TABLE usage_days ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_days FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_days
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON usage_days TO purser_app;

--bun:split

-- Uses that were refused, and checks that were told no. Neither leaves another record.
CREATE TABLE denial_days (
  app_id     uuid   NOT NULL,
  day        bigint NOT NULL,
  feature_id uuid   NOT NULL,
  reason     text   NOT NULL,
  org_id     uuid   NOT NULL,
  uses       bigint NOT NULL,
  checks     bigint NOT NULL,
  PRIMARY KEY (app_id, day, feature_id, reason)
);

--bun:split

ALTER TABLE denial_days ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE denial_days FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON denial_days
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON denial_days TO purser_app;

--bun:split

-- What came into wallets and was taken back, charges aside.
CREATE TABLE entry_days (
  app_id            uuid          NOT NULL,
  day               bigint        NOT NULL,
  kind              text          NOT NULL,
  credit_id         uuid          NOT NULL,
  org_id            uuid          NOT NULL,
  entries           bigint        NOT NULL,
  came_nanocredits  numeric(38,0) NOT NULL,
  taken_nanocredits numeric(38,0) NOT NULL,
  PRIMARY KEY (app_id, day, kind, credit_id)
);

--bun:split

ALTER TABLE entry_days ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE entry_days FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON entry_days
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON entry_days TO purser_app;

--bun:split

-- How many different wallets were used on a day, to about two in a hundred: a
-- sketch of them, so that days can be put together without counting anyone twice.
CREATE TABLE active_days (
  app_id uuid   NOT NULL,
  day    bigint NOT NULL,
  org_id uuid   NOT NULL,
  sketch bytea  NOT NULL,
  PRIMARY KEY (app_id, day)
);

--bun:split

ALTER TABLE active_days ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE active_days FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON active_days
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON active_days TO purser_app;

--bun:split

-- One small row for each hour in which anything happened. By its first and its last
-- transaction a list of events leaps over the time that brought none.
CREATE TABLE activity_hours (
  app_id    uuid   NOT NULL,
  hour      bigint NOT NULL,
  org_id    uuid   NOT NULL,
  uses      bigint NOT NULL, -- accepted or deduplicated
  denials   bigint NOT NULL,
  requests  bigint NOT NULL,
  failures  bigint NOT NULL, -- requests that were answered with an error
  oldest_tx uuid,            -- by real time; NULL for an hour without uses
  newest_tx uuid,
  PRIMARY KEY (app_id, hour)
);

--bun:split

ALTER TABLE activity_hours ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE activity_hours FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON activity_hours
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON activity_hours TO purser_app;

--bun:split

-- The application's latest requests: failures, and a sample of the rest. A ring:
-- the next one takes the place of the oldest, so that the table ends somewhere. It
-- has the route and never the path, and nothing of a body or a header.
CREATE TABLE recent_requests (
  app_id  uuid    NOT NULL,
  slot    integer NOT NULL,
  org_id  uuid    NOT NULL,
  id      uuid    NOT NULL, -- of the request; a use's transaction has the same
  at      bigint  NOT NULL,
  method  text    NOT NULL,
  route   text    NOT NULL,
  status  integer NOT NULL,
  error   text,
  took_us bigint  NOT NULL,
  key_id  uuid    NOT NULL,
  PRIMARY KEY (app_id, slot)
);

--bun:split

ALTER TABLE recent_requests ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE recent_requests FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON recent_requests
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON recent_requests TO purser_app;

--bun:split

-- How far the ring has turned.
CREATE TABLE request_rings (
  app_id  uuid   NOT NULL,
  org_id  uuid   NOT NULL,
  written bigint NOT NULL,
  PRIMARY KEY (app_id)
);

--bun:split

ALTER TABLE request_rings ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE request_rings FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON request_rings
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON request_rings TO purser_app;

--bun:split

-- Why somebody corrected a balance by hand, and who.
CREATE TABLE adjustments (
  app_id     uuid   NOT NULL,
  entry_id   uuid   NOT NULL, -- in the journal
  org_id     uuid   NOT NULL,
  reason     text   NOT NULL,
  user_id    uuid   NOT NULL,
  PRIMARY KEY (app_id, entry_id),
  CONSTRAINT adjustment_is_an_entry FOREIGN KEY (app_id, entry_id) REFERENCES journal (app_id, id),
  CONSTRAINT adjustment_has_a_reason CHECK (reason <> '')
);

--bun:split

ALTER TABLE adjustments ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE adjustments FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON adjustments
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT ON adjustments TO purser_app;

--bun:split

-- Which balances are in debt, so that they are found among a million that are not.
-- A table of its own: an index on balances, or a reference to them, would be looked
-- after with every charge, and no charge changes a debt.
CREATE TABLE debtors (
  app_id    uuid NOT NULL,
  wallet_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  org_id    uuid NOT NULL,
  PRIMARY KEY (app_id, wallet_id, credit_id)
);

--bun:split

ALTER TABLE debtors ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE debtors FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON debtors
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, DELETE ON debtors TO purser_app;

--bun:split

-- Whose terms rest because a payment failed. Like the next index it is of no use to
-- the engine's look at a subscription, so the planner cannot take it for that.
CREATE INDEX subscriptions_on_hold ON subscriptions (app_id, wallet_id) WHERE status IN ('past_due', 'unpaid');

--bun:split

CREATE INDEX subscriptions_by_plan ON subscriptions (app_id, plan_id, wallet_id) WHERE plan_id IS NOT NULL;

--bun:split

-- Every id is there, and the engine's look names none: only a list can use it.
CREATE INDEX subscriptions_by_status ON subscriptions (app_id, status, id) WHERE id IS NOT NULL;
