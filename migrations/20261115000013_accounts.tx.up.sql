-- What is to be done, and what is being said, concerns one account at the provider.
-- An application that changes to another account still has payments at the one
-- before, which nobody else can tell anything about. NULL is for what concerns none,
-- and for rows from before this column.
ALTER TABLE work_queue
  ADD COLUMN connection_id uuid,
  ADD CONSTRAINT work_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections (app_id, id);

--bun:split

ALTER TABLE provider_ops
  ADD COLUMN connection_id uuid,
  ADD CONSTRAINT op_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections (app_id, id);

--bun:split

-- Of two wishes of one identity the later one counts. The number of the lease under
-- which each was begun tells which that is, whatever the clocks of the nodes say.
ALTER TABLE provider_ops ADD COLUMN fence bigint;

--bun:split

CREATE INDEX ops_by_wallet ON provider_ops (app_id, wallet_id);

--bun:split

-- Webhooks are kept to know them again, and leases to keep two apart. Neither is
-- needed once the provider has forgotten the one and the holder the other.
GRANT DELETE ON webhook_events, leases TO purser_app;
