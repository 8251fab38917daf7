-- The caller's own labels of an event, for those events that have any. They explain no
-- amount, so they are no part of the event's row.
CREATE TABLE event_properties (
  app_id     uuid   NOT NULL,
  wallet_id  uuid   NOT NULL,
  seq        bigint NOT NULL, -- of the event in its wallet
  org_id     uuid   NOT NULL,
  properties jsonb  NOT NULL, -- an object of texts
  PRIMARY KEY (app_id, wallet_id, seq),
  CONSTRAINT properties_belong_to_an_event FOREIGN KEY (app_id, wallet_id, seq) REFERENCES usage_events (app_id, wallet_id, seq)
);

--bun:split

ALTER TABLE event_properties ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE event_properties FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON event_properties
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT ON event_properties TO purser_app;
