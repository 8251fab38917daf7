-- While the waiting deliveries of an endpoint start over: the last notification whose delivery
-- was reset. NULL when there is nothing to reset.
ALTER TABLE webhook_endpoints ADD COLUMN reset_after uuid;
