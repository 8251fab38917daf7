-- The sums of usage_totals by the day of UTC, made once a day is final: charts of many days
-- read a twenty-fourth of the rows.
CREATE TABLE usage_total_days (
  app_id        uuid           NOT NULL,
  day           bigint         NOT NULL, -- its first millisecond
  feature_id    uuid           NOT NULL,
  credit_id     uuid           NOT NULL,
  key_id        uuid           NOT NULL,
  org_id        uuid           NOT NULL,
  events        bigint         NOT NULL,
  deduplicated  bigint         NOT NULL,
  quantity      numeric(38,0)  NOT NULL,
  included      numeric(38,0)  NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL,
  PRIMARY KEY (app_id, day, feature_id, credit_id, key_id)
);

--bun:split

ALTER TABLE usage_total_days ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_total_days FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_total_days
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT ON usage_total_days TO purser_app;

--bun:split

-- Days before this time are in usage_total_days.
ALTER TABLE usage_progress ADD COLUMN days_until bigint NOT NULL DEFAULT 0;
