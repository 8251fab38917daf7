-- The last verification of each kind, for people to see, and the claim by which
-- one node at a time runs it.
CREATE TABLE verifications (
  app_id        uuid   NOT NULL,
  kind          text   NOT NULL,
  org_id        uuid   NOT NULL,
  claimed_until bigint NOT NULL, -- by the real clock, as all times here
  claimed_at    bigint NOT NULL,
  started_at    bigint,          -- of the last one that has ended
  finished_at   bigint,
  wallet_count  bigint NOT NULL DEFAULT 0,
  entry_count   bigint NOT NULL DEFAULT 0,
  differences   bigint NOT NULL DEFAULT 0,
  failure       text   NOT NULL DEFAULT '', -- why it did not come to its end
  lines         text[] NOT NULL DEFAULT '{}', -- the first differences
  PRIMARY KEY (app_id, kind),
  CONSTRAINT verification_kind_is_known CHECK (kind IN ('new', 'all')),
  CONSTRAINT verification_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id)
);

--bun:split

ALTER TABLE verifications ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE verifications FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON verifications
  USING (app_id::text = current_setting('purser.app_id', true));

--bun:split

GRANT SELECT, INSERT, UPDATE ON verifications TO purser_app;
