-- Lists what waits for an endpoint and what failed, without reading what was delivered.
CREATE INDEX deliveries_open ON deliveries (app_id, endpoint_id, notification_id) WHERE status <> 'delivered';
