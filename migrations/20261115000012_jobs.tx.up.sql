-- Where the job queue keeps its own tables, which its own migrations make after
-- these. They belong to no application.
CREATE SCHEMA IF NOT EXISTS river;

--bun:split

GRANT USAGE ON SCHEMA river TO purser_app;
