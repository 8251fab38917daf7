-- A notification is inserted in the transaction of the change that it reports, without a
-- number. A sequencer numbers committed rows under the lock of the application's feed,
-- so the numbers have no gap, and a reader past one never misses an earlier one.
CREATE TABLE notifications (
  app_id     uuid    NOT NULL,
  id         uuid    NOT NULL,
  org_id     uuid    NOT NULL,
  type       text    COLLATE "C" NOT NULL,
  wallet_id  uuid,                           -- NULL when it concerns no wallet
  data       jsonb   NOT NULL,               -- the state after the change
  created_at bigint  NOT NULL,               -- by the application's clock
  seq        bigint,                         -- NULL until it is numbered
  test       boolean NOT NULL DEFAULT false, -- sent to one endpoint, and never numbered
  PRIMARY KEY (app_id, id),
  CONSTRAINT seq_is_given_once UNIQUE (app_id, seq),
  CONSTRAINT seq_is_positive CHECK (seq > 0),
  CONSTRAINT test_has_no_seq CHECK (NOT test OR seq IS NULL)
);

--bun:split

CREATE INDEX notifications_to_number ON notifications (app_id, id) WHERE seq IS NULL AND NOT test;

--bun:split

CREATE INDEX notifications_by_wallet ON notifications (app_id, wallet_id, seq) WHERE wallet_id IS NOT NULL;

--bun:split

ALTER TABLE notifications ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE notifications FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON notifications
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON notifications TO purser_app;

--bun:split

-- The end of each application's feed. Its row is the lock of the sequencer.
CREATE TABLE feeds (
  app_id     uuid   NOT NULL,
  org_id     uuid   NOT NULL,
  last_seq   bigint NOT NULL DEFAULT 0,
  oldest_seq bigint NOT NULL DEFAULT 1, -- older ones are deleted
  PRIMARY KEY (app_id),
  CONSTRAINT feed_keeps_what_it_numbered CHECK (oldest_seq >= 1 AND last_seq >= oldest_seq - 1)
);

--bun:split

ALTER TABLE feeds ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE feeds FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON feeds
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON feeds TO purser_app;
