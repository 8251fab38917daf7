-- Tests of endpoints have no number, so the retention finds them by their time.
CREATE INDEX notifications_of_tests ON notifications (app_id, created_at) WHERE test;
