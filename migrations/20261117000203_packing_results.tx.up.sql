-- How many wallets a run has skipped because of an error: the next one tries them again.
ALTER TABLE packed_runs ADD COLUMN skipped bigint NOT NULL DEFAULT 0;

--bun:split

-- What packing has done, for metrics. They are of all applications at once, which no role but
-- the owner can read from the applications' own tables; it has no row of a tenant.
CREATE TABLE packing_results (
  application_id uuid   NOT NULL PRIMARY KEY,
  events         bigint NOT NULL,
  skipped        bigint NOT NULL, -- wallets, in the last run
  finished_at    bigint NOT NULL  -- of the last run, by the real clock
);

--bun:split

GRANT SELECT ON packing_results TO purser_app;
