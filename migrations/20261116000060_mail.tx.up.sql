-- Mails that wait to be sent. Address, subject and text are sealed with the secret key:
-- a mail may carry a link that signs someone up.
CREATE TABLE mails (
  id         uuid    NOT NULL PRIMARY KEY,
  kind       text    NOT NULL,
  sealed     bytea   NOT NULL,
  created_at bigint  NOT NULL,
  expires_at bigint  NOT NULL, -- past it the mail is of no use and is dropped
  due_at     bigint  NOT NULL,
  tries      integer NOT NULL,
  CONSTRAINT mail_has_a_kind CHECK (kind <> ''),
  CONSTRAINT mail_expires_later CHECK (expires_at > created_at)
);

--bun:split

CREATE INDEX mails_by_due ON mails (due_at);

--bun:split

CREATE INDEX mails_by_age ON mails (created_at);

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON mails TO purser_app;

--bun:split

-- Links that replace a forgotten password, known by their hash. The id is that of the
-- mail: a mail that is sent again has a new link, and the earlier one ends.
CREATE TABLE password_resets (
  id         uuid   NOT NULL PRIMARY KEY,
  user_id    uuid   NOT NULL,
  hash       bytea  NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  CONSTRAINT reset_hash_is_sha256 CHECK (length(hash) = 32),
  CONSTRAINT reset_hash_is_unique UNIQUE (hash),
  CONSTRAINT reset_is_of_a_user FOREIGN KEY (user_id) REFERENCES users (id)
);

--bun:split

CREATE INDEX password_resets_by_user ON password_resets (user_id);

--bun:split

CREATE INDEX password_resets_by_expiry ON password_resets (expires_at);

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON password_resets TO purser_app;

--bun:split

-- Where an invitation was mailed to; NULL for a link that is passed on by hand.
ALTER TABLE invitations ADD COLUMN email text;
