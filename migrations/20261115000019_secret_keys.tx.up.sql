-- The keys under which stored secrets may be sealed, known by a value that is
-- derived one way: it shows whether a key is the same, and nothing of the key. A
-- server that is started with other keys refuses to serve.
CREATE TABLE secret_keys (
  check_value bytea  NOT NULL PRIMARY KEY,
  created_at  bigint NOT NULL,
  CONSTRAINT check_value_is_32_bytes CHECK (length(check_value) = 32)
);

--bun:split

GRANT SELECT, INSERT, DELETE ON secret_keys TO purser_app;
