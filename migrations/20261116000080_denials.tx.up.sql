-- Usage that was refused and checks that were answered with no, with the numbers that the
-- decision compared. Nodes add a bounded number in a minute, and delete what is older than
-- the operator's retention. The identity may have no wallet.
CREATE TABLE denial_records (
  app_id          uuid    NOT NULL,
  id              uuid    NOT NULL, -- begins with the real time, which retention goes by
  org_id          uuid    NOT NULL,
  request_id      uuid    NOT NULL,
  key_id          uuid    NOT NULL,
  at              bigint  NOT NULL, -- by the application's clock
  identity        text    COLLATE "C" NOT NULL,
  feature_id      uuid    NOT NULL,
  credit_id       uuid    NOT NULL,
  reason          text    NOT NULL,
  gate            text    NOT NULL,
  event_id        text,             -- NULL for a check
  entity_id       text,
  quantity        bigint  NOT NULL,
  billable        bigint  NOT NULL, -- not covered by the allowance
  pricing_mode    text    NOT NULL,
  cost_nanocredits nanocredits NOT NULL,
  quantity_per_unit bigint NOT NULL,
  basis_points    bigint  NOT NULL,
  amount_nanocredits nanocredits NOT NULL, -- of the charge; zero when refused before the price
  balance_nanocredits nanocredits NOT NULL,
  debt_nanocredits nanocredits NOT NULL,
  allowance_limit bigint,           -- NULL without a limit, as the four columns below
  allowance_used  bigint,
  allowance_start bigint,
  allowance_end   bigint,
  allowance_overage text,
  PRIMARY KEY (app_id, id)
);

--bun:split

CREATE INDEX denial_records_by_identity ON denial_records (app_id, identity, id);

--bun:split

CREATE INDEX denial_records_by_request ON denial_records (app_id, request_id);

--bun:split

ALTER TABLE denial_records ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE denial_records FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON denial_records
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, DELETE ON denial_records TO purser_app;
