-- The queue of an application is shared by all nodes: a node leases the jobs that it
-- runs. lease_id is the claim, compared before a result is stored; leased_until goes by
-- the database's clock, and a lease that ran out belongs to a node that has died.
--
-- A release before this one leases the whole queue of an application instead. Beside
-- it a job may run twice, which does no harm.
ALTER TABLE work_queue
  ADD COLUMN lease_id     uuid,
  ADD COLUMN leased_until bigint NOT NULL DEFAULT 0;

--bun:split

-- Tasks of the installation that run on one node at a time, at an interval. The times
-- go by the database's clock.
CREATE TABLE periodic_tasks (
  name         text COLLATE "C" PRIMARY KEY,
  due_at       bigint NOT NULL DEFAULT 0,
  lease_id     uuid,
  leased_until bigint NOT NULL DEFAULT 0,
  tries        integer NOT NULL DEFAULT 0,
  last_error   text
);

--bun:split

GRANT SELECT, INSERT, UPDATE ON periodic_tasks TO purser_app;
