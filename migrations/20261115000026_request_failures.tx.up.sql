-- Failed requests of an application's own keys, for 30 days or as the operator sets, so
-- that people can answer why a customer was refused weeks ago. Nodes add a bounded number
-- in a minute. Like recent_requests it has the route and never the path; the identity and
-- the feature are what the request named.
CREATE TABLE request_failures (
  app_id   uuid    NOT NULL,
  id       uuid    NOT NULL, -- of the request
  org_id   uuid    NOT NULL,
  at       bigint  NOT NULL,
  method   text    NOT NULL,
  route    text    NOT NULL,
  status   integer NOT NULL,
  error    text,
  took_us  bigint  NOT NULL,
  key_id   uuid    NOT NULL,
  identity text    NOT NULL, -- empty when the request named none
  feature  text    NOT NULL,
  PRIMARY KEY (app_id, id)
);

--bun:split

ALTER TABLE request_failures ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE request_failures FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON request_failures
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, DELETE ON request_failures TO purser_app;
