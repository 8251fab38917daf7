-- Payments added up by the day, once no more of a day can come. What was returned changes
-- later and is read from the payments.
CREATE TABLE revenue_days (
  app_id        uuid     NOT NULL,
  day           bigint   NOT NULL, -- its first millisecond
  currency      text     COLLATE "C" NOT NULL,
  topup         boolean  NOT NULL, -- a top-up, otherwise a plan
  org_id        uuid     NOT NULL,
  amount_cents  bigint   NOT NULL,
  PRIMARY KEY (app_id, day, currency, topup)
);

--bun:split

ALTER TABLE revenue_days ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE revenue_days FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON revenue_days
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT ON revenue_days TO purser_app;

--bun:split

CREATE INDEX payments_returned ON provider_payments (app_id, created_at) WHERE refunded_cents + disputed_cents > 0;

--bun:split

-- Days before this time are in revenue_days.
ALTER TABLE usage_progress ADD COLUMN revenue_until bigint NOT NULL DEFAULT 0;
