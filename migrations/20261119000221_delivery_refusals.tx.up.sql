-- When a delivery was last tried, by the application's clock, and how many attempts were
-- refused although the endpoint accepted another delivery since the one before. Others say
-- nothing about the delivery: the endpoint may have been down.
ALTER TABLE deliveries
  ADD COLUMN refusals integer NOT NULL DEFAULT 0,
  ADD COLUMN tried_at bigint NOT NULL DEFAULT 0;
