-- What packing has done, readable for all applications at once, for metrics.
CREATE TABLE packing_results (
  application_id uuid   NOT NULL PRIMARY KEY,
  events         bigint NOT NULL,
  skipped        bigint NOT NULL, -- wallets, in the last run
  finished_at    bigint NOT NULL  -- of the last run, by the real clock
);

--bun:split

GRANT SELECT ON packing_results TO purser_app;
