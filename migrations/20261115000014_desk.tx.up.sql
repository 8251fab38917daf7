-- Finds the deposits of a kind or a credit when hardly any entry is one. Entries are
-- written far less often than events, which have no more than they need.
CREATE INDEX journal_by_kind ON journal (app_id, kind, credit_id, id);

--bun:split

-- Every look at events reads all summaries. With ten million events those of 32 pages
-- each take as long as a few thousand rows; of 128, a look has no more rows to pass
-- over than summaries to read.
DROP INDEX usage_events_by_transaction;

--bun:split

CREATE INDEX usage_events_by_transaction ON usage_events USING brin (tx_id) WITH (pages_per_range = 128, autosummarize = on);
