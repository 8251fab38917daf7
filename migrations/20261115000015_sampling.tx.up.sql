-- Uses rewrite these rows all the time and change nothing of what the planner asks
-- about. By default Postgres samples a table again when a tenth of it was written:
-- with a million wallets in use, at every look, for a tenth of its processor time.
ALTER TABLE wallets SET (autovacuum_analyze_scale_factor = 1);

--bun:split

ALTER TABLE balances SET (autovacuum_analyze_scale_factor = 1);

--bun:split

ALTER TABLE counters SET (autovacuum_analyze_scale_factor = 1);
