-- How many mails a person got about what happens once, such as an expiring key: many
-- alerts, counted in sent, leave these.
ALTER TABLE mail_budgets ADD COLUMN notices integer NOT NULL DEFAULT 0;
