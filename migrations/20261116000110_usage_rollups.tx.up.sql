-- Usage added up by the hour, from events that no running transaction can change any more.
-- A job adds each event once; verification compares the sums with the events. Hours go by
-- the application's clock.
CREATE TABLE usage_hours (
  app_id        uuid           NOT NULL,
  wallet_id     uuid           NOT NULL,
  hour          bigint         NOT NULL, -- its first millisecond
  feature_id    uuid           NOT NULL,
  credit_id     uuid           NOT NULL,
  org_id        uuid           NOT NULL,
  events        bigint         NOT NULL,
  deduplicated  bigint         NOT NULL, -- of the events
  quantity      numeric(38,0)  NOT NULL, -- of the others
  included      numeric(38,0)  NOT NULL, -- the part of the quantity that allowances covered
  charged_nanocredits numeric(38,0) NOT NULL,
  PRIMARY KEY (app_id, wallet_id, hour, feature_id, credit_id)
);

--bun:split

-- Rows are added in the order of time. Verification reads them by hour.
CREATE INDEX usage_hours_by_hour ON usage_hours USING brin (hour) WITH (pages_per_range = 32, autosummarize = on);

--bun:split

ALTER TABLE usage_hours ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_hours FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_hours
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON usage_hours TO purser_app;

--bun:split

-- The same of all wallets together, by API key: what charts of an application read.
CREATE TABLE usage_totals (
  app_id        uuid           NOT NULL,
  hour          bigint         NOT NULL,
  feature_id    uuid           NOT NULL,
  credit_id     uuid           NOT NULL,
  key_id        uuid           NOT NULL,
  org_id        uuid           NOT NULL,
  events        bigint         NOT NULL,
  deduplicated  bigint         NOT NULL,
  quantity      numeric(38,0)  NOT NULL,
  included      numeric(38,0)  NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL,
  PRIMARY KEY (app_id, hour, feature_id, credit_id, key_id)
);

--bun:split

ALTER TABLE usage_totals ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_totals FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_totals
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON usage_totals TO purser_app;

--bun:split

-- What each wallet used of a credit in a month of UTC: who was active, and who used most.
CREATE TABLE usage_months (
  app_id        uuid           NOT NULL,
  month         bigint         NOT NULL, -- its first millisecond
  wallet_id     uuid           NOT NULL,
  credit_id     uuid           NOT NULL,
  org_id        uuid           NOT NULL,
  events        bigint         NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL,
  PRIMARY KEY (app_id, month, wallet_id, credit_id),
  CONSTRAINT month_belongs_to_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id)
);

--bun:split

CREATE INDEX usage_months_by_charge ON usage_months (app_id, month, credit_id, charged_nanocredits, wallet_id);

--bun:split

ALTER TABLE usage_months ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_months FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_months
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON usage_months TO purser_app;

--bun:split

-- Up to where an application's events are added up. A boundary is proposed with the
-- transaction id that is next, and used once every earlier transaction has ended: an
-- event's id is made before its transaction commits.
CREATE TABLE usage_progress (
  app_id          uuid   NOT NULL,
  org_id          uuid   NOT NULL,
  added           bigint NOT NULL DEFAULT 0, -- events with an id before this time are added
  until           bigint NOT NULL DEFAULT 0, -- sums are final before this time of the application's clock
  proposed        bigint NOT NULL DEFAULT 0,
  proposed_until  bigint NOT NULL DEFAULT 0,
  proposed_xid    bigint NOT NULL DEFAULT 0, -- 0 for no proposal
  proposed_at     bigint NOT NULL DEFAULT 0,
  clock_offset    bigint NOT NULL DEFAULT 0, -- when it was proposed
  verified_until  bigint NOT NULL DEFAULT 0, -- an hour before which the sums were compared with the events
  PRIMARY KEY (app_id),
  CONSTRAINT progress_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id)
);

--bun:split

ALTER TABLE usage_progress ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_progress FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_progress
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON usage_progress TO purser_app;
