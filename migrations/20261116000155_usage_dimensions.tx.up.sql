-- Usage by entity and by property, added up by the day of the application's clock, of all
-- wallets together. Callers choose the values, so a name has at most 1,000 of its own on a
-- day; the rest is in '~other'.
CREATE TABLE usage_dimensions (
  app_id        uuid           NOT NULL,
  name          text           COLLATE "C" NOT NULL, -- 'entity', or 'property:' and its name
  day           bigint         NOT NULL, -- its first millisecond
  feature_id    uuid           NOT NULL,
  credit_id     uuid           NOT NULL,
  value         text           COLLATE "C" NOT NULL,
  org_id        uuid           NOT NULL,
  events        bigint         NOT NULL,
  deduplicated  bigint         NOT NULL,
  quantity      numeric(38,0)  NOT NULL,
  included      numeric(38,0)  NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL,
  PRIMARY KEY (app_id, name, day, feature_id, credit_id, value)
);

--bun:split

ALTER TABLE usage_dimensions ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_dimensions FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_dimensions
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON usage_dimensions TO purser_app;

--bun:split

-- The values that have sums of their own on a day.
CREATE TABLE usage_values (
  app_id  uuid   NOT NULL,
  day     bigint NOT NULL,
  name    text   COLLATE "C" NOT NULL,
  value   text   COLLATE "C" NOT NULL,
  org_id  uuid   NOT NULL,
  PRIMARY KEY (app_id, day, name, value)
);

--bun:split

ALTER TABLE usage_values ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE usage_values FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON usage_values
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT ON usage_values TO purser_app;
