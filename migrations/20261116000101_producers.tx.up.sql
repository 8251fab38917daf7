-- Whether the end of a key was announced.
ALTER TABLE api_keys ADD COLUMN expiry_announced_at bigint;

--bun:split

-- How much of a payment was lost in disputes that are closed.
ALTER TABLE provider_payments ADD COLUMN lost_cents bigint NOT NULL DEFAULT 0;
