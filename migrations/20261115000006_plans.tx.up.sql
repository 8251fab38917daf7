-- What can be subscribed to. The lists are kept as they are sold, with the ids of
-- what they name; feature_references says which features they hold fast.
CREATE TABLE plans (
  app_id           uuid    NOT NULL,
  id               uuid    NOT NULL,
  org_id           uuid    NOT NULL,
  key              text    COLLATE "C" NOT NULL,
  name             text    NOT NULL,
  amount_cents     bigint  NOT NULL,
  currency         text    NOT NULL,
  billing_interval text    NOT NULL,
  terms            jsonb   NOT NULL,
  topups_enabled   boolean NOT NULL,
  active           boolean NOT NULL,
  revision         bigint  NOT NULL,
  sync_status      text    NOT NULL,
  sync_error       text,
  sync_version     bigint  NOT NULL, -- counts what the provider has to hear of
  price_number     bigint  NOT NULL, -- counts the prices that it needs
  product_id       text,             -- the provider's
  price_id         text,
  created_at       bigint  NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT plan_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id),
  CONSTRAINT plan_key_is_unique_in_its_application UNIQUE (app_id, key),
  CONSTRAINT plan_revision_is_positive CHECK (revision > 0),
  CONSTRAINT plan_amount_is_not_negative CHECK (amount_cents >= 0),
  CONSTRAINT plan_interval_is_known CHECK (billing_interval IN ('month', 'year')),
  CONSTRAINT sync_status_is_known CHECK (sync_status IN ('pending', 'synced', 'error'))
);

--bun:split

ALTER TABLE plans ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE plans FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON plans
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON plans TO purser_app;

--bun:split

-- Which plans and live subscriptions name a feature in a limit or a multiplier.
-- While there is one, the feature's pricing cannot change.
CREATE TABLE feature_references (
  app_id     uuid NOT NULL,
  feature_id uuid NOT NULL,
  holder_id  uuid NOT NULL, -- the plan or the subscription
  org_id     uuid NOT NULL,
  multiplied boolean NOT NULL, -- whether in a multiplier
  PRIMARY KEY (app_id, feature_id, holder_id),
  CONSTRAINT reference_is_to_a_feature FOREIGN KEY (app_id, feature_id) REFERENCES features (app_id, id)
);

--bun:split

CREATE INDEX feature_references_by_holder ON feature_references (app_id, holder_id);

--bun:split

ALTER TABLE feature_references ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE feature_references FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON feature_references
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, DELETE ON feature_references TO purser_app;
