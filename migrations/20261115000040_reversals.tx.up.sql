-- Reversals return a charge or a part of it, and transfers move credits between two
-- wallets. The longer list accepts every row that the shorter one did, so that no row is read
-- while the table is locked; a later migration validates it.
ALTER TABLE journal DROP CONSTRAINT kind_is_known;

--bun:split

ALTER TABLE journal ADD CONSTRAINT kind_is_known
  CHECK (kind IN ('deposit', 'grant', 'top-up', 'refund', 'dispute', 'adjustment', 'reversal', 'transfer')) NOT VALID;

--bun:split

-- Which charge an entry of the kind 'reversal' returns, and why. The event itself never
-- changes.
CREATE TABLE reversals (
  app_id          uuid          NOT NULL,
  entry_id        uuid          NOT NULL,
  org_id          uuid          NOT NULL,
  wallet_id       uuid          NOT NULL,
  tx_id           uuid          NOT NULL, -- of the event
  event_id        bytea         NOT NULL, -- as in usage_events, which is looked up by it
  amount_nanocredits nanocredits NOT NULL,
  requested_nanocredits nanocredits,      -- NULL when the request named no amount
  whole           boolean       NOT NULL, -- nothing of the charge is left
  reason          text          NOT NULL,
  idempotency_key text          COLLATE "C" NOT NULL,
  user_id         uuid,                   -- NULL when an API key reversed it
  created_at      bigint        NOT NULL,
  PRIMARY KEY (app_id, entry_id),
  CONSTRAINT reversal_is_made_once UNIQUE (app_id, idempotency_key),
  CONSTRAINT reversal_is_an_entry FOREIGN KEY (app_id, entry_id) REFERENCES journal (app_id, id),
  CONSTRAINT reversal_has_a_reason CHECK (reason <> '')
);

--bun:split

CREATE INDEX reversals_by_event ON reversals (app_id, wallet_id, tx_id);

--bun:split

ALTER TABLE reversals ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE reversals FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON reversals
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT ON reversals TO purser_app;

--bun:split

-- A reversed charge has billed its period no longer.
GRANT DELETE ON billed_periods TO purser_app;
