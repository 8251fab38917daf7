-- A transfer moves credits from one wallet to another: two entries of the kind
-- 'transfer' of the same size, one out and one in.
CREATE TABLE transfers (
  app_id          uuid          NOT NULL,
  entry_id        uuid          NOT NULL, -- of the sender, and the transfer's id
  org_id          uuid          NOT NULL,
  wallet_id       uuid          NOT NULL, -- the sender
  to_entry_id     uuid          NOT NULL,
  to_wallet_id    uuid          NOT NULL,
  amount_nanocredits nanocredits NOT NULL,
  reason          text          NOT NULL,
  idempotency_key text          COLLATE "C" NOT NULL,
  user_id         uuid,                   -- NULL when an API key made it
  created_at      bigint        NOT NULL,
  PRIMARY KEY (app_id, entry_id),
  CONSTRAINT transfer_is_made_once UNIQUE (app_id, idempotency_key),
  CONSTRAINT transfer_arrives_once UNIQUE (app_id, to_entry_id),
  CONSTRAINT transfer_is_an_entry FOREIGN KEY (app_id, entry_id) REFERENCES journal (app_id, id),
  CONSTRAINT transfer_arrives FOREIGN KEY (app_id, to_entry_id) REFERENCES journal (app_id, id),
  CONSTRAINT transfer_has_two_wallets CHECK (wallet_id <> to_wallet_id),
  CONSTRAINT transfer_moves_something CHECK (amount_nanocredits > 0),
  CONSTRAINT transfer_has_a_reason CHECK (reason <> '')
);

--bun:split

ALTER TABLE transfers ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE transfers FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON transfers
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT ON transfers TO purser_app;
