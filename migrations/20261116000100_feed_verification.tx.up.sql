-- How far a recorded verification has read the feed.
ALTER TABLE feeds ADD COLUMN verified_seq bigint NOT NULL DEFAULT 0;

--bun:split

-- Endpoints that were deleted. Their deliveries stay until the retention deletes them, so
-- a verification can tell them from deliveries of an endpoint that never was.
CREATE TABLE deleted_endpoints (
  app_id     uuid   NOT NULL,
  id         uuid   NOT NULL,
  org_id     uuid   NOT NULL,
  deleted_at bigint NOT NULL, -- by the application's clock
  PRIMARY KEY (app_id, id)
);

--bun:split

ALTER TABLE deleted_endpoints ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE deleted_endpoints FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON deleted_endpoints
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, DELETE ON deleted_endpoints TO purser_app;
