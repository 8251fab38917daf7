-- A packed transaction is found by its id, and blocks of a time are passed over. No other
-- change stands beside it, whose lock on a table that usage reads would last as long.
CREATE INDEX packed_events_by_transaction ON packed_events (app_id, last_tx, first_tx);
