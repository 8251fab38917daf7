-- What a request was about and what it was answered, for its page. Earlier releases
-- leave these columns empty.
ALTER TABLE recent_requests ADD COLUMN identity text, ADD COLUMN feature text, ADD COLUMN message text;

--bun:split

ALTER TABLE request_failures ADD COLUMN message text;

--bun:split

CREATE INDEX request_failures_by_identity ON request_failures (app_id, identity, id);
