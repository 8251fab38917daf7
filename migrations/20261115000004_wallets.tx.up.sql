-- The wallet row is the mutex of everything that hangs on it: whoever changes a
-- balance locks it first. Room is left on each page, so that such a change stays on it.
CREATE TABLE wallets (
  app_id           uuid    NOT NULL,
  id               uuid    NOT NULL,
  org_id           uuid    NOT NULL,
  identity         text    COLLATE "C" NOT NULL,
  billing_interval text,
  billing_anchor   bigint,
  charged          boolean NOT NULL DEFAULT false, -- whether a use was ever accepted
  version          bigint  NOT NULL DEFAULT 0,     -- grows with every change
  last_seq         bigint  NOT NULL DEFAULT 0,     -- of the wallet's latest journal entry
  created_at       bigint  NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT wallet_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id),
  CONSTRAINT identity_has_one_wallet_in_its_application UNIQUE (app_id, identity),
  CONSTRAINT billing_period_is_whole CHECK ((billing_interval IS NULL) = (billing_anchor IS NULL)),
  CONSTRAINT billing_interval_is_known CHECK (billing_interval IN ('day', 'week', 'month')),
  -- A writer that expected another version writes -1, and so fails as a whole.
  CONSTRAINT version_was_expected CHECK (version >= 0)
) WITH (fillfactor = 80);

--bun:split

ALTER TABLE wallets ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE wallets FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON wallets
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON wallets TO purser_app;

--bun:split

CREATE TABLE balances (
  app_id             uuid          NOT NULL,
  wallet_id          uuid          NOT NULL,
  credit_id          uuid          NOT NULL,
  org_id             uuid          NOT NULL,
  amount_nanocredits numeric(19,0) NOT NULL,
  debt_nanocredits   numeric(19,0) NOT NULL DEFAULT 0,
  PRIMARY KEY (app_id, wallet_id, credit_id),
  CONSTRAINT balance_belongs_to_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id),
  CONSTRAINT balance_is_of_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits (app_id, id),
  CONSTRAINT amount_is_not_negative CHECK (amount_nanocredits >= 0),
  CONSTRAINT debt_is_not_negative CHECK (debt_nanocredits >= 0),
  CONSTRAINT nothing_is_held_while_in_debt CHECK (amount_nanocredits = 0 OR debt_nanocredits = 0)
) WITH (fillfactor = 75);

--bun:split

ALTER TABLE balances ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE balances FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON balances
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON balances TO purser_app;

--bun:split

-- Every change of a balance but the charges of usage. Rows are only ever added.
CREATE TABLE journal (
  app_id            uuid          NOT NULL,
  id                uuid          NOT NULL,
  org_id            uuid          NOT NULL,
  wallet_id         uuid          NOT NULL,
  seq               bigint        NOT NULL, -- counts the wallet's entries, without a gap
  kind              text          NOT NULL,
  credit_id         uuid          NOT NULL,
  delta_nanocredits numeric(20,0) NOT NULL, -- what the entry adds to balance minus debt
  balance_after     numeric(19,0) NOT NULL,
  debt_after        numeric(19,0) NOT NULL,
  idempotency_key   text          COLLATE "C",
  created_at        bigint        NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT entry_has_its_place_in_the_wallet UNIQUE (app_id, wallet_id, seq),
  CONSTRAINT idempotency_key_is_unique_in_its_application UNIQUE (app_id, idempotency_key),
  CONSTRAINT entry_belongs_to_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id),
  CONSTRAINT entry_is_of_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits (app_id, id),
  CONSTRAINT kind_is_known CHECK (kind IN ('deposit', 'grant', 'top-up', 'refund', 'dispute', 'adjustment')),
  CONSTRAINT balance_after_is_not_negative CHECK (balance_after >= 0),
  CONSTRAINT debt_after_is_not_negative CHECK (debt_after >= 0)
);

--bun:split

ALTER TABLE journal ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE journal FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON journal
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT ON journal TO purser_app;
