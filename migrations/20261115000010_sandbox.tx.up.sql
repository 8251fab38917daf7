-- How far the application's clock is ahead of the real one, in milliseconds. It
-- moves together with the epoch, so that no node decides by an old one.
ALTER TABLE app_state ADD COLUMN clock_offset bigint NOT NULL DEFAULT 0;

--bun:split

-- The world of an application at the payment provider that lives in the server: one
-- document, changed as a whole under its row's lock.
CREATE TABLE sandbox_worlds (
  app_id       uuid   NOT NULL PRIMARY KEY,
  org_id       uuid   NOT NULL,
  state        bytea,          -- NULL until it was first changed
  CONSTRAINT world_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id)
);

--bun:split

ALTER TABLE sandbox_worlds ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE sandbox_worlds FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON sandbox_worlds
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON sandbox_worlds TO purser_app;
