-- What every request reads of an account of the payments sandbox: its clock, its
-- webhook endpoints, counters. NULL for an account that was stored as one document
-- (state) and not changed since; its objects become rows with the next request.
ALTER TABLE sandbox_worlds ADD COLUMN head bytea;

--bun:split

-- The objects of these accounts, one row each, so that a request reads and writes a
-- handful of them however many there are. The documents are the sandbox's own; the
-- other columns are what it looks objects up by. Rows are inserted from the
-- application's own row of app_state, and only under the lock of sandbox_worlds.
CREATE TABLE sandbox_objects (
  app_id   uuid   NOT NULL,
  key      text   NOT NULL, -- the kind, a slash, the id
  org_id   uuid   NOT NULL,
  kind     text   NOT NULL,
  nth      bigint NOT NULL, -- the order of creation
  customer text,
  parent   text,            -- the object that it was made for
  alias    text,            -- a page's token, a lookup key, a caller's reference
  live_of  text,            -- the object that has to consider it while it is not settled
  due      bigint,          -- when a timer fires, a delivery may be tried, or an object expires
  refs     text[] NOT NULL, -- keys of what is read together with it
  document bytea  NOT NULL,
  PRIMARY KEY (app_id, key)
);

--bun:split

CREATE INDEX sandbox_objects_in_order ON sandbox_objects (app_id, kind, nth);

--bun:split

CREATE INDEX sandbox_objects_of_customers ON sandbox_objects (app_id, kind, customer, nth) WHERE customer IS NOT NULL;

--bun:split

CREATE INDEX sandbox_objects_of_parents ON sandbox_objects (app_id, kind, parent, nth) WHERE parent IS NOT NULL;

--bun:split

CREATE INDEX sandbox_objects_by_alias ON sandbox_objects (app_id, kind, alias) WHERE alias IS NOT NULL;

--bun:split

CREATE INDEX sandbox_objects_live ON sandbox_objects (app_id, kind, live_of) WHERE live_of IS NOT NULL;

--bun:split

CREATE INDEX sandbox_objects_due ON sandbox_objects (app_id, kind, due, nth) WHERE due IS NOT NULL;

--bun:split

ALTER TABLE sandbox_objects ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE sandbox_objects FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON sandbox_objects
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON sandbox_objects TO purser_app;
