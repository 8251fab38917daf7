-- Which notifications were mailed to members: those up to this number.
ALTER TABLE feeds ADD COLUMN mailed_seq bigint NOT NULL DEFAULT 0;

--bun:split

-- What a member chose to be mailed about: none, live or all applications. NULL is the
-- default of the topic.
ALTER TABLE members
  ADD COLUMN mail_alerts   text,
  ADD COLUMN mail_webhooks text,
  ADD COLUMN mail_keys     text;

--bun:split

ALTER TABLE members ADD CONSTRAINT mail_alerts_is_known CHECK (mail_alerts IN ('none', 'live', 'all'));

--bun:split

ALTER TABLE members ADD CONSTRAINT mail_webhooks_is_known CHECK (mail_webhooks IN ('none', 'live', 'all'));

--bun:split

ALTER TABLE members ADD CONSTRAINT mail_keys_is_known CHECK (mail_keys IN ('none', 'live', 'all'));

--bun:split

-- How many mails about notifications a person got since when: at most some in an hour.
CREATE TABLE mail_budgets (
  user_id uuid    NOT NULL PRIMARY KEY,
  since   bigint  NOT NULL,
  sent    integer NOT NULL,
  CONSTRAINT budget_is_of_a_user FOREIGN KEY (user_id) REFERENCES users (id)
);

--bun:split

GRANT SELECT, INSERT, UPDATE ON mail_budgets TO purser_app;
