-- A wallet gets another identity: it is renamed, or erased. The row makes a request
-- happen once, and says what follows it. The identities are NULL once the wallet was
-- erased and nothing else needs them.
CREATE TABLE identity_changes (
  app_id          uuid    NOT NULL,
  id              uuid    NOT NULL,
  org_id          uuid    NOT NULL,
  wallet_id       uuid    NOT NULL,
  kind            text    NOT NULL,
  from_identity   text    COLLATE "C",
  to_identity     text    COLLATE "C", -- of a rename
  reason          text,                -- of an erasure
  idempotency_key text    COLLATE "C" NOT NULL,
  user_id         uuid,                -- NULL when an API key made it
  created_at      bigint  NOT NULL,
  settled         boolean NOT NULL DEFAULT false, -- rows that name the old identity were moved or deleted
  PRIMARY KEY (app_id, id),
  CONSTRAINT identity_change_is_made_once UNIQUE (app_id, kind, idempotency_key),
  CONSTRAINT identity_change_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id),
  CONSTRAINT identity_change_is_known CHECK (kind IN ('rename', 'erasure')),
  CONSTRAINT erasure_has_a_reason CHECK (kind = 'rename' OR reason <> '')
);

--bun:split

CREATE INDEX identity_changes_by_wallet ON identity_changes (app_id, wallet_id, id);

--bun:split

CREATE INDEX identity_changes_to_settle ON identity_changes (app_id) WHERE NOT settled;

--bun:split

ALTER TABLE identity_changes ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE identity_changes FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON identity_changes
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON identity_changes TO purser_app;

--bun:split

-- A wallet's chain of seals begins with a hash of its identity. After the identity has
-- changed, its stored seal still begins with the first hash, until a job has sealed the
-- same entries with the second one.
CREATE TABLE pending_seals (
  app_id       uuid  NOT NULL,
  wallet_id    uuid  NOT NULL,
  org_id       uuid  NOT NULL,
  first_before bytea NOT NULL,
  first_after  bytea NOT NULL,
  PRIMARY KEY (app_id, wallet_id),
  CONSTRAINT first_seals_are_sha256 CHECK (length(first_before) = 32 AND length(first_after) = 32)
);

--bun:split

ALTER TABLE pending_seals ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE pending_seals FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON pending_seals
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON pending_seals TO purser_app;

--bun:split

-- The log of requests and denials follows a wallet to its new identity.
GRANT UPDATE ON denial_records TO purser_app;

--bun:split

GRANT UPDATE ON request_failures TO purser_app;
