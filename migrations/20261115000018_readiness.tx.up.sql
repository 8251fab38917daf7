-- A node proves that it can commit a write by overwriting one of these few rows,
-- which say nothing. They belong to no application.
CREATE TABLE readiness_probes (
    slot       smallint PRIMARY KEY CONSTRAINT readiness_probe_has_one_of_sixteen_slots CHECK (slot BETWEEN 0 AND 15),
    written_at bigint NOT NULL
);

--bun:split

GRANT SELECT, INSERT, UPDATE ON readiness_probes TO purser_app;
