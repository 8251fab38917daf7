-- Where an application's notifications are sent. The secrets are sealed.
CREATE TABLE webhook_endpoints (
  app_id          uuid    NOT NULL,
  id              uuid    NOT NULL,
  org_id          uuid    NOT NULL,
  url             text    NOT NULL,
  types           text[]  COLLATE "C" NOT NULL, -- empty for all
  description     text    NOT NULL,
  status          text    NOT NULL,
  pause_reason    text    NOT NULL DEFAULT '',
  secret          bytea   NOT NULL,
  previous_secret bytea,                        -- signs too until previous_until
  previous_until  bigint  NOT NULL DEFAULT 0,   -- by the database's clock
  revision        integer NOT NULL DEFAULT 1,
  last_seq        bigint  NOT NULL DEFAULT 0,   -- the newest notification for this endpoint
  failing_since   bigint,                       -- NULL after a success
  succeeded_at    bigint,
  created_at      bigint  NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT status_is_known CHECK (status IN ('enabled', 'paused', 'disabled'))
);

--bun:split

ALTER TABLE webhook_endpoints ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE webhook_endpoints FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON webhook_endpoints
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_endpoints TO purser_app;

--bun:split

-- One row for each notification and endpoint that wants it, written by the sequencer.
-- previous_seq is the notification before it for the same endpoint.
CREATE TABLE deliveries (
  app_id          uuid    NOT NULL,
  endpoint_id     uuid    NOT NULL,
  notification_id uuid    NOT NULL,
  org_id          uuid    NOT NULL,
  seq             bigint  NOT NULL, -- 0 for a test
  previous_seq    bigint  NOT NULL, -- 0 for the first
  status          text    NOT NULL DEFAULT 'pending',
  attempts        integer NOT NULL DEFAULT 0, -- since it was last requested
  due_at          bigint  NOT NULL,           -- by the application's clock
  created_at      bigint  NOT NULL,
  PRIMARY KEY (app_id, endpoint_id, notification_id),
  CONSTRAINT status_is_known CHECK (status IN ('pending', 'delivered', 'failed')),
  CONSTRAINT previous_is_earlier CHECK (previous_seq < seq OR seq = 0)
);

--bun:split

CREATE INDEX deliveries_due ON deliveries (app_id, endpoint_id, due_at, seq) WHERE status = 'pending';

--bun:split

CREATE INDEX deliveries_by_notification ON deliveries (app_id, notification_id);

--bun:split

ALTER TABLE deliveries ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE deliveries FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON deliveries
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON deliveries TO purser_app;

--bun:split

-- What each attempt of a delivery sent and got.
CREATE TABLE delivery_attempts (
  app_id          uuid    NOT NULL,
  id              uuid    NOT NULL,
  org_id          uuid    NOT NULL,
  endpoint_id     uuid    NOT NULL,
  notification_id uuid    NOT NULL,
  url             text    NOT NULL,
  status          integer,          -- of the answer; NULL without one
  error           text    NOT NULL, -- empty when an answer came
  answer          text    NOT NULL, -- its beginning
  started_at      bigint  NOT NULL, -- by the database's clock
  took_ms         integer NOT NULL,
  PRIMARY KEY (app_id, id)
);

--bun:split

CREATE INDEX attempts_by_delivery ON delivery_attempts (app_id, notification_id, endpoint_id, id);

--bun:split

ALTER TABLE delivery_attempts ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE delivery_attempts FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON delivery_attempts
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, DELETE ON delivery_attempts TO purser_app;
