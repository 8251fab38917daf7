-- What all wallets hold and owe of a credit, at the end of each day or when it was last
-- added up: the liability of the application.
CREATE TABLE liability_days (
  app_id     uuid           NOT NULL,
  day        bigint         NOT NULL, -- its first millisecond
  credit_id  uuid           NOT NULL,
  org_id     uuid           NOT NULL,
  held_nanocredits numeric(38,0) NOT NULL,
  debt_nanocredits numeric(38,0) NOT NULL,
  at         bigint         NOT NULL, -- by the application's clock
  PRIMARY KEY (app_id, day, credit_id)
);

--bun:split

ALTER TABLE liability_days ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE liability_days FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON liability_days
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON liability_days TO purser_app;

--bun:split

-- Revenue by day.
CREATE INDEX payments_by_time ON provider_payments (app_id, created_at);
