CREATE TABLE credits (
  app_id     uuid   NOT NULL,
  id         uuid   NOT NULL,
  org_id     uuid   NOT NULL,
  key        text   COLLATE "C" NOT NULL,
  name       text   NOT NULL,
  unit       text   NOT NULL,
  revision   bigint NOT NULL,
  created_at bigint NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT credit_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id),
  CONSTRAINT credit_key_is_unique_in_its_application UNIQUE (app_id, key),
  CONSTRAINT credit_revision_is_positive CHECK (revision > 0)
);

--bun:split

ALTER TABLE credits ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE credits FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON credits
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON credits TO purser_app;

--bun:split

CREATE TABLE features (
  app_id               uuid          NOT NULL,
  id                   uuid          NOT NULL,
  org_id               uuid          NOT NULL,
  key                  text          COLLATE "C" NOT NULL,
  name                 text          NOT NULL,
  unit                 text          NOT NULL,
  credit_id            uuid          NOT NULL,
  cost_nanocredits     numeric(19,0) NOT NULL,
  quantity_per_unit    bigint        NOT NULL,
  pricing_mode         text          NOT NULL,
  deduplication_period text          NOT NULL,
  deduplication_locked boolean       NOT NULL DEFAULT false, -- since its first accepted use
  revision             bigint        NOT NULL,
  price_number         bigint        NOT NULL, -- of the revision in force, in prices
  created_at           bigint        NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT feature_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id),
  CONSTRAINT feature_is_priced_in_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits (app_id, id),
  CONSTRAINT feature_key_is_unique_in_its_application UNIQUE (app_id, key),
  CONSTRAINT feature_revision_is_positive CHECK (revision > 0),
  CONSTRAINT cost_is_not_negative CHECK (cost_nanocredits >= 0),
  CONSTRAINT quantity_per_unit_is_positive CHECK (quantity_per_unit > 0),
  CONSTRAINT pricing_mode_is_known CHECK (pricing_mode IN ('fixed', 'callback')),
  CONSTRAINT deduplication_period_is_known CHECK (deduplication_period IN ('none', 'day', 'week', 'month', 'billing'))
);

--bun:split

ALTER TABLE features ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE features FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON features
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON features TO purser_app;

--bun:split

-- Every revision that a feature ever had, so that an old charge can be explained.
-- An event names its price by number alone: the application's epoch that made it.
CREATE TABLE prices (
  app_id               uuid          NOT NULL,
  number               bigint        NOT NULL,
  org_id               uuid          NOT NULL,
  feature_id           uuid          NOT NULL,
  revision             bigint        NOT NULL,
  credit_id            uuid          NOT NULL,
  cost_nanocredits     numeric(19,0) NOT NULL,
  quantity_per_unit    bigint        NOT NULL,
  pricing_mode         text          NOT NULL,
  created_at           bigint        NOT NULL,
  PRIMARY KEY (app_id, number),
  CONSTRAINT price_is_of_a_feature FOREIGN KEY (app_id, feature_id) REFERENCES features (app_id, id),
  CONSTRAINT price_is_in_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits (app_id, id)
);

--bun:split

ALTER TABLE prices ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE prices FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON prices
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT ON prices TO purser_app;
