-- One row for each application, there from its first second. Bulk inserts select
-- from it, so that a distributed Postgres knows which shard they belong to. The
-- epoch grows with every change of the catalog or of a key: whoever remembers
-- either compares it before they act on what they remember.
CREATE TABLE app_state (
  app_id     uuid   NOT NULL PRIMARY KEY,
  org_id     uuid   NOT NULL,
  epoch      bigint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL
);

--bun:split

ALTER TABLE app_state ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE app_state FORCE ROW LEVEL SECURITY;

--bun:split

-- The same policy stands on every table. Without the coalesce the planner would
-- count it as a second, sharper condition on app_id, expect one row of an
-- application, and find a wallet by reading all of them.
CREATE POLICY tenant ON app_state
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON app_state TO purser_app;

--bun:split

-- The secret itself is nowhere: the key is known by the hash of it.
CREATE TABLE api_keys (
  app_id       uuid    NOT NULL,
  id           uuid    NOT NULL,
  org_id       uuid    NOT NULL,
  hash         bytea   NOT NULL,
  name         text    NOT NULL,
  preset       text    NOT NULL,
  permissions  text[]  NOT NULL,
  live         boolean NOT NULL,
  last_four    text    NOT NULL,
  created_by   uuid,            -- a user; none when the command line made it
  created_at   bigint  NOT NULL,
  expires_at   bigint,
  revoked      boolean NOT NULL DEFAULT false, -- for good, whatever a node's clock says
  revoked_at   bigint, -- in the future while a rotation's overlap runs
  last_used_at bigint,
  replaces     uuid,
  replaced_by  uuid,
  PRIMARY KEY (app_id, id),
  CONSTRAINT key_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id)
);

--bun:split

ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON api_keys
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON api_keys TO purser_app;
