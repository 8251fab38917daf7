-- The wallets that were sealed once. A wallet named here without a row in wallet_seals
-- has lost its seal. The rows are written by verification alone, never by a charge.
CREATE TABLE sealed_wallets (
  app_id    uuid   NOT NULL,
  wallet_id uuid   NOT NULL,
  org_id    uuid   NOT NULL,
  sealed_at bigint NOT NULL, -- the first time, by the real clock
  PRIMARY KEY (app_id, wallet_id)
);

--bun:split

ALTER TABLE sealed_wallets ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE sealed_wallets FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON sealed_wallets
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT ON sealed_wallets TO purser_app;

--bun:split

-- When each verification was last claimed, readable for all applications at once: a
-- node finds what is due with one read. The subject is an application, or the zero
-- id for what belongs to the installation.
CREATE TABLE verification_claims (
  subject_id    uuid   NOT NULL,
  kind          text   NOT NULL,
  claimed_at    bigint NOT NULL,
  claimed_until bigint NOT NULL,
  PRIMARY KEY (subject_id, kind),
  CONSTRAINT claimed_kind_is_known CHECK (kind IN ('new', 'all', 'installation'))
);

--bun:split

GRANT SELECT, INSERT, UPDATE ON verification_claims TO purser_app;
