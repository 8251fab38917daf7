-- How far the job has sealed a wallet for its other identity, so that it goes on there: the
-- first_after it began with, both seals so far, and the number of the entry. NULL at the start.
ALTER TABLE pending_seals ADD COLUMN progress bytea
  CONSTRAINT reseal_progress_is_complete CHECK (length(progress) = 104);
