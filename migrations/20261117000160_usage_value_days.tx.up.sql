-- The sums of usage_dimensions by the day, made once a day is final: one row has all values
-- of a name, so that the largest of many days are found without reading each.
CREATE TABLE usage_value_days (
  app_id        uuid           NOT NULL,
  name          text           COLLATE "C" NOT NULL,
  day           bigint         NOT NULL, -- its first millisecond
  feature_id    uuid           NOT NULL, -- zero for all features together
  credit_id     uuid           NOT NULL,
  org_id        uuid           NOT NULL,
  events        bigint         NOT NULL, -- of all values, as the columns that follow
  deduplicated  bigint         NOT NULL,
  quantity      numeric(38,0)  NOT NULL,
  included      numeric(38,0)  NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL,
  packed        bytea          NOT NULL, -- each value with its sums (metering/rollup, PackValues)
  PRIMARY KEY (app_id, name, day, feature_id, credit_id)
);

--bun:split

-- Reading takes longer than the disk space is worth.
ALTER TABLE usage_value_days ALTER COLUMN packed SET STORAGE EXTERNAL;

--bun:split

ALTER TABLE usage_value_days ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_value_days FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_value_days
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT ON usage_value_days TO purser_app;

--bun:split

-- Days before this time are in usage_value_days.
ALTER TABLE usage_progress ADD COLUMN values_until bigint NOT NULL DEFAULT 0;
