-- Since when a job has failed each time, by the database's clock, so that people see
-- jobs that fail for ever. NULL for one that has not failed since it last worked.
ALTER TABLE work_queue ADD COLUMN failing_since bigint;

--bun:split

CREATE INDEX work_queue_failing ON work_queue (app_id, failing_since) WHERE failing_since IS NOT NULL;

--bun:split

-- How many of an application's jobs fail, and since when the oldest of them does.
-- Metrics add these up over all applications, whose queues they cannot read.
ALTER TABLE work_hints
  ADD COLUMN failing       integer NOT NULL DEFAULT 0,
  ADD COLUMN failing_since bigint;
