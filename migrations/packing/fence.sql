-- Properties of packed events stay where they are.
ALTER TABLE event_properties DROP CONSTRAINT IF EXISTS properties_belong_to_an_event;

-- A release that knows nothing of packed events could charge for one again, so rows of its
-- sessions are refused. pg_dump writes a constraint that is not valid after the rows.
ALTER TABLE usage_events DROP CONSTRAINT IF EXISTS session_reads_packed_events,
  ADD CONSTRAINT session_reads_packed_events CHECK (coalesce(current_setting('purser.reads_packed', true), '') = 'on') NOT VALID;
