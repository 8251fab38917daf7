-- A price that was deleted at the provider is replaced by another of the same number. The
-- terms of both are kept: subscriptions were sold at the first.
ALTER TABLE plan_prices DROP CONSTRAINT price_is_made_once;
