-- An archived application or organization stays as it is: pages show it, and nothing in
-- it changes until it is restored. NULL is active.
ALTER TABLE applications ADD COLUMN archived_at bigint;

--bun:split

ALTER TABLE organizations ADD COLUMN archived_at bigint;

--bun:split

-- A key that was revoked with its application, and works again when that is restored.
-- It is revoked as well, so that the hot path, and the release before, read one column.
ALTER TABLE api_keys ADD COLUMN archived_at bigint;
