-- A time before whose day the sums of days were compared with the events, apart from
-- verified_until, which is about hours.
ALTER TABLE usage_progress ADD COLUMN days_verified_until bigint NOT NULL DEFAULT 0;
