-- How people come in. None of this belongs to an application: the rows are a
-- person's own, or an organization's.

-- The first account is made through a link that the server prints. Any link works
-- that was printed while there was no account; the first account ends all of them.
CREATE TABLE setup_links (
  hash       bytea  NOT NULL PRIMARY KEY,
  created_at bigint NOT NULL,
  CONSTRAINT setup_hash_is_sha256 CHECK (length(hash) = 32)
);

--bun:split

CREATE TABLE passwords (
  user_id    uuid   NOT NULL PRIMARY KEY,
  encoded    text   NOT NULL, -- argon2id with its parameters and its salt
  changed_at bigint NOT NULL,
  CONSTRAINT password_is_of_a_user FOREIGN KEY (user_id) REFERENCES users (id)
);

--bun:split

-- The seed is sealed. The last step whose code was used is kept, so that no code
-- works twice.
CREATE TABLE second_factors (
  user_id     uuid   NOT NULL PRIMARY KEY,
  sealed_seed bytea  NOT NULL,
  created_at  bigint NOT NULL,
  last_step   bigint NOT NULL,
  CONSTRAINT factor_is_of_a_user FOREIGN KEY (user_id) REFERENCES users (id)
);

--bun:split

CREATE TABLE recovery_codes (
  user_id uuid  NOT NULL,
  hash    bytea NOT NULL,
  PRIMARY KEY (user_id, hash),
  CONSTRAINT code_is_of_a_user FOREIGN KEY (user_id) REFERENCES users (id),
  CONSTRAINT code_hash_is_sha256 CHECK (length(hash) = 32)
);

--bun:split

-- How often a login failed in a row, by the hash of what was typed as the address:
-- an address that has no account is counted like one that has.
CREATE TABLE login_failures (
  subject   bytea   NOT NULL PRIMARY KEY,
  failures  integer NOT NULL,
  failed_at bigint  NOT NULL,
  CONSTRAINT subject_is_sha256 CHECK (length(subject) = 32)
);

--bun:split

CREATE INDEX login_failures_by_age ON login_failures (failed_at);

--bun:split

-- The token itself is nowhere but in the browser.
CREATE TABLE sessions (
  hash       bytea  NOT NULL PRIMARY KEY,
  id         uuid   NOT NULL, -- what its owner ends it by
  user_id    uuid,
  content    bytea  NOT NULL,
  created_at bigint NOT NULL,
  seen_at    bigint NOT NULL,
  expires_at bigint NOT NULL,
  address    text   NOT NULL,
  agent      text   NOT NULL,
  CONSTRAINT session_hash_is_sha256 CHECK (length(hash) = 32),
  CONSTRAINT session_id_is_unique UNIQUE (id),
  CONSTRAINT session_is_of_a_user FOREIGN KEY (user_id) REFERENCES users (id)
);

--bun:split

CREATE INDEX sessions_by_user ON sessions (user_id);

--bun:split

CREATE INDEX sessions_by_expiry ON sessions (expires_at);

--bun:split

CREATE TABLE invitations (
  id          uuid   NOT NULL PRIMARY KEY,
  org_id      uuid   NOT NULL,
  hash        bytea  NOT NULL,
  note        text   NOT NULL, -- whom it is for, in the inviter's words
  role        text   NOT NULL,
  permissions text[] NOT NULL,
  invited_by  uuid   NOT NULL,
  created_at  bigint NOT NULL,
  expires_at  bigint NOT NULL,
  closed_at   bigint, -- when it was accepted or withdrawn
  accepted_by uuid,
  CONSTRAINT invitation_hash_is_sha256 CHECK (length(hash) = 32),
  CONSTRAINT invitation_hash_is_unique UNIQUE (hash),
  CONSTRAINT invitation_is_of_an_organization FOREIGN KEY (org_id) REFERENCES organizations (id),
  CONSTRAINT invitation_is_by_a_user FOREIGN KEY (invited_by) REFERENCES users (id),
  CONSTRAINT invitation_is_accepted_by_a_user FOREIGN KEY (accepted_by) REFERENCES users (id)
);

--bun:split

CREATE INDEX invitations_by_organization ON invitations (org_id, id);

--bun:split

-- Who did what by hand. Each entry carries the hash of itself and of the one before
-- it; the head says where the chain ends, so that a cut end shows as well. Who acts
-- is written out, for the log outlives accounts.
CREATE TABLE audit_entries (
  org_id      uuid   NOT NULL,
  number      bigint NOT NULL,
  at          bigint NOT NULL,
  user_id     uuid,            -- none when it was the command line
  actor       text   NOT NULL,
  address     text   NOT NULL,
  request_id  uuid,
  application uuid,            -- none when it is about the organization
  action      text   NOT NULL,
  target      text   NOT NULL,
  before      text   NOT NULL, -- JSON, as it was sealed
  after       text   NOT NULL,
  seal        bytea  NOT NULL,
  PRIMARY KEY (org_id, number),
  CONSTRAINT entry_is_of_an_organization FOREIGN KEY (org_id) REFERENCES organizations (id),
  CONSTRAINT entry_is_numbered_from_one CHECK (number > 0),
  CONSTRAINT seal_is_sha256 CHECK (length(seal) = 32)
);

--bun:split

CREATE TABLE audit_heads (
  org_id uuid   NOT NULL PRIMARY KEY,
  number bigint NOT NULL,
  seal   bytea  NOT NULL,
  CONSTRAINT head_is_of_an_organization FOREIGN KEY (org_id) REFERENCES organizations (id)
);

--bun:split

GRANT SELECT, INSERT, DELETE ON setup_links, recovery_codes TO purser_app;

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON passwords, second_factors, login_failures, sessions TO purser_app;

--bun:split

GRANT SELECT, INSERT, UPDATE ON invitations, audit_heads TO purser_app;

--bun:split

GRANT SELECT, INSERT ON audit_entries TO purser_app;
