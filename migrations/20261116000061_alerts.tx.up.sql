-- Rules that announce a low balance or a used allowance. They are part of the catalog:
-- a change advances the epoch.
CREATE TABLE alert_rules (
  app_id        uuid    NOT NULL,
  id            uuid    NOT NULL,
  org_id        uuid    NOT NULL,
  key           text    COLLATE "C" NOT NULL,
  kind          text    NOT NULL,
  credit_id     uuid,             -- of a balance
  feature_id    uuid,             -- of an allowance
  watched_key   text    COLLATE "C" NOT NULL, -- of the credit or the feature, which never changes
  thresholds    numeric(19,0)[] NOT NULL, -- nanocredits, or whole percentages
  rearm_percent integer NOT NULL,
  quiet_hours   integer NOT NULL,
  identity      text    COLLATE "C", -- the only wallet it watches; NULL for all
  created_at    bigint  NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT alert_rule_key_is_unique UNIQUE (app_id, key),
  CONSTRAINT alert_rule_is_of_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits (app_id, id),
  CONSTRAINT alert_rule_is_of_a_feature FOREIGN KEY (app_id, feature_id) REFERENCES features (app_id, id),
  CONSTRAINT alert_rule_watches_one_thing CHECK (
    (kind = 'balance' AND credit_id IS NOT NULL AND feature_id IS NULL) OR
    (kind = 'allowance' AND feature_id IS NOT NULL AND credit_id IS NULL))
);

--bun:split

ALTER TABLE alert_rules ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE alert_rules FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON alert_rules
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON alert_rules TO purser_app;

--bun:split

-- That a threshold was announced for a wallet. It is written with an alert and when the
-- balance recovers, under the wallet's lock. Rows of deleted rules are without effect.
CREATE TABLE alert_marks (
  app_id       uuid          NOT NULL,
  wallet_id    uuid          NOT NULL,
  rule_id      uuid          NOT NULL,
  threshold    numeric(19,0) NOT NULL, -- zero for an exhausted balance
  org_id       uuid          NOT NULL,
  armed        boolean       NOT NULL, -- it recovered since, and is announced again
  fired_at     bigint        NOT NULL,
  period_start bigint        NOT NULL, -- of an allowance; zero for a balance
  PRIMARY KEY (app_id, wallet_id, rule_id, threshold),
  CONSTRAINT mark_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id)
);

--bun:split

ALTER TABLE alert_marks ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE alert_marks FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON alert_marks
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON alert_marks TO purser_app;
