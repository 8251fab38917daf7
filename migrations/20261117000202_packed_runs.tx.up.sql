-- How many wallets a run has skipped because of an error: the next one tries them again.
ALTER TABLE packed_runs ADD COLUMN skipped bigint NOT NULL DEFAULT 0;

--bun:split

-- A packed transaction is found by its id, and blocks of a time are passed over.
CREATE INDEX packed_events_by_transaction ON packed_events (app_id, last_tx, first_tx);
