-- What is open in an application is counted before it is archived. Few rows are, among
-- many that ended.
CREATE INDEX topups_open ON topups (app_id) WHERE status IN ('open', 'processing');

--bun:split

CREATE INDEX changes_open ON subscription_changes (app_id) WHERE state IN ('requested', 'pending');

--bun:split

CREATE INDEX ops_running ON provider_ops (app_id) WHERE state = 'running';
