-- Which applications have something to be done, and from when on. The work itself is
-- in the application's own tables; this only saves asking all of them. A hint that
-- is too early costs a look. One that is missing is made good by the round over all
-- applications, so nothing correct rests on this table.
CREATE TABLE work_hints (
  app_id uuid   NOT NULL,
  kind   text   NOT NULL,
  org_id uuid   NOT NULL,
  due_at bigint,           -- by the real clock; NULL for nothing
  PRIMARY KEY (app_id, kind),
  CONSTRAINT work_kind_is_known CHECK (kind IN ('billing', 'sandbox'))
);

--bun:split

CREATE INDEX work_hints_by_time ON work_hints (kind, due_at) WHERE due_at IS NOT NULL;

--bun:split

GRANT SELECT, INSERT, UPDATE ON work_hints TO purser_app;

--bun:split

-- Leads from the address to which a provider sends its webhooks to the application
-- whose account it is. Rows never change.
CREATE TABLE connection_directory (
  connection_id uuid NOT NULL PRIMARY KEY,
  org_id        uuid NOT NULL,
  app_id        uuid NOT NULL
);

--bun:split

GRANT SELECT, INSERT ON connection_directory TO purser_app;

--bun:split

-- The payment accounts of an application. What was made at one is unknown to the
-- next, so a replaced account keeps its row: its subscriptions still point there.
CREATE TABLE provider_connections (
  app_id                uuid    NOT NULL,
  id                    uuid    NOT NULL,
  org_id                uuid    NOT NULL,
  mode                  text    NOT NULL,
  live                  boolean NOT NULL,  -- whether it is about real money
  account_id            text    NOT NULL,
  api_key               bytea,             -- sealed; NULL when it can be made again
  api_key_last_four     text,
  endpoint_id           text,              -- of the webhooks, at the provider
  webhook_secrets       bytea[]  NOT NULL, -- sealed, the current one first
  webhook_secrets_until bigint[] NOT NULL, -- of each, when it ends; 0 for never
  portal_configuration  text,              -- at the provider
  events_after          bigint  NOT NULL,  -- up to where the provider's list of events was read
  created_at            bigint  NOT NULL,
  changed_at            bigint  NOT NULL,
  replaced_at           bigint,
  PRIMARY KEY (app_id, id),
  CONSTRAINT connection_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id),
  CONSTRAINT connection_mode_is_known CHECK (mode IN ('stripe', 'sandbox')),
  CONSTRAINT sandbox_is_never_live CHECK (mode <> 'sandbox' OR NOT live),
  CONSTRAINT every_secret_has_an_end CHECK (cardinality(webhook_secrets) = cardinality(webhook_secrets_until))
);

--bun:split

CREATE UNIQUE INDEX application_has_one_connection ON provider_connections (app_id) WHERE replaced_at IS NULL;

--bun:split

ALTER TABLE provider_connections ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE provider_connections FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON provider_connections
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON provider_connections TO purser_app;

--bun:split

-- What the provider calls an identity.
CREATE TABLE provider_customers (
  app_id        uuid   NOT NULL,
  connection_id uuid   NOT NULL,
  wallet_id     uuid   NOT NULL,
  org_id        uuid   NOT NULL,
  provider_id   text   COLLATE "C" NOT NULL,
  created_at    bigint NOT NULL,
  PRIMARY KEY (app_id, connection_id, wallet_id),
  CONSTRAINT customer_is_one_wallet UNIQUE (app_id, connection_id, provider_id),
  CONSTRAINT customer_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections (app_id, id),
  CONSTRAINT customer_has_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id)
);

--bun:split

ALTER TABLE provider_customers ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE provider_customers FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON provider_customers
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, DELETE ON provider_customers TO purser_app;

--bun:split

-- Every price that a plan ever had at the provider, with the terms that it was sold
-- on. A price there never changes; it is taken off sale.
CREATE TABLE plan_prices (
  app_id        uuid   NOT NULL,
  connection_id uuid   NOT NULL,
  price_id      text   COLLATE "C" NOT NULL,
  org_id        uuid   NOT NULL,
  plan_id       uuid   NOT NULL,
  number        bigint NOT NULL, -- the plan's own count of its prices
  terms         jsonb  NOT NULL,
  archive_after bigint,          -- NULL while it is for sale
  archived_at   bigint,
  created_at    bigint NOT NULL,
  PRIMARY KEY (app_id, price_id),
  CONSTRAINT price_is_made_once UNIQUE (app_id, connection_id, plan_id, number),
  CONSTRAINT price_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections (app_id, id),
  CONSTRAINT price_is_of_a_plan FOREIGN KEY (app_id, plan_id) REFERENCES plans (app_id, id)
);

--bun:split

ALTER TABLE plan_prices ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE plan_prices FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON plan_prices
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON plan_prices TO purser_app;

--bun:split

-- What billing knows of a subscription beyond what the engine reads. The engine's
-- columns stay as they are, and so does the index by which it finds the row.
ALTER TABLE subscriptions
  ADD COLUMN connection_id        uuid,
  ADD COLUMN provider_id          text    COLLATE "C", -- NULL for a free one that runs here
  ADD COLUMN begun                boolean NOT NULL DEFAULT true,
  ADD COLUMN extra                boolean NOT NULL DEFAULT false,
  ADD COLUMN anchor               bigint  NOT NULL DEFAULT 0,
  ADD COLUMN plan_id              uuid,
  ADD COLUMN sale                 jsonb,               -- the rest of the terms: plan, price, grants
  ADD COLUMN cancel_at_period_end boolean NOT NULL DEFAULT false,
  ADD COLUMN scheduled            jsonb,               -- NULL for none
  ADD COLUMN pending              jsonb,               -- NULL for none
  ADD COLUMN created_at           bigint  NOT NULL DEFAULT 0,
  ADD COLUMN ended_at             bigint;

--bun:split

-- Until the first payment the provider may not have said which period it is for.
ALTER TABLE subscriptions
  DROP CONSTRAINT period_is_not_empty,
  ADD CONSTRAINT period_is_not_empty CHECK (period_start < period_end OR NOT begun AND period_start = period_end),
  ADD CONSTRAINT subscription_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections (app_id, id),
  ADD CONSTRAINT provider_knows_it_by_a_connection CHECK (provider_id IS NULL OR connection_id IS NOT NULL);

--bun:split

CREATE UNIQUE INDEX subscription_is_kept_once ON subscriptions (app_id, provider_id);

--bun:split

-- For what the engine never asks for. Were the live ones in it as well, the planner
-- could take it for theirs.
CREATE INDEX subscriptions_not_live ON subscriptions (app_id, wallet_id, id) WHERE status IN ('incomplete', 'canceled');

--bun:split

-- Wishes to be on other terms, from the moment they are made. They are kept for
-- ever: an invoice that is paid late still has to find what was sold.
CREATE TABLE subscription_changes (
  app_id          uuid   NOT NULL,
  id              uuid   NOT NULL,
  org_id          uuid   NOT NULL,
  wallet_id       uuid   NOT NULL,
  kind            text   NOT NULL,
  subscription_id uuid,            -- NULL for a checkout that has made none yet
  replaces        uuid,            -- the subscription whose place a checkout takes
  terms           jsonb  NOT NULL, -- frozen when it was asked for
  state           text   NOT NULL,
  requested_at    bigint NOT NULL,
  session_id      text   COLLATE "C",
  invoice_id      text   COLLATE "C",
  payment_url     text,
  expires_at      bigint,
  PRIMARY KEY (app_id, id),
  CONSTRAINT change_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id),
  CONSTRAINT change_is_of_a_subscription FOREIGN KEY (app_id, subscription_id) REFERENCES subscriptions (app_id, id),
  CONSTRAINT change_replaces_a_subscription FOREIGN KEY (app_id, replaces) REFERENCES subscriptions (app_id, id),
  CONSTRAINT session_sells_one_change UNIQUE (app_id, session_id),
  CONSTRAINT change_kind_is_known CHECK (kind IN ('checkout', 'upgrade', 'downgrade')),
  CONSTRAINT change_state_is_known CHECK (state IN ('requested', 'pending', 'applied', 'dropped'))
);

--bun:split

CREATE INDEX changes_by_wallet ON subscription_changes (app_id, wallet_id, id);

--bun:split

-- Of each kind, one can wait: an upgrade for its payment, a downgrade for the renewal.
CREATE UNIQUE INDEX one_change_of_a_kind_waits ON subscription_changes (app_id, subscription_id, kind)
  WHERE state = 'pending' AND kind IN ('upgrade', 'downgrade');

--bun:split

ALTER TABLE subscription_changes ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE subscription_changes FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON subscription_changes
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON subscription_changes TO purser_app;

--bun:split

-- Purchases of credits on a hosted page. What was asked for is frozen.
CREATE TABLE topups (
  app_id             uuid          NOT NULL,
  id                 uuid          NOT NULL,
  org_id             uuid          NOT NULL,
  wallet_id          uuid          NOT NULL,
  credit_id          uuid          NOT NULL,
  amount_nanocredits numeric(19,0) NOT NULL,
  amount_cents       bigint        NOT NULL,
  currency           text          NOT NULL,
  connection_id      uuid          NOT NULL,
  customer_id        text          NOT NULL,
  live               boolean       NOT NULL,
  session_id         text          COLLATE "C", -- NULL until the provider has made the page
  url                text,
  expires_at         bigint        NOT NULL,
  status             text          NOT NULL,
  created_at         bigint        NOT NULL,
  PRIMARY KEY (app_id, id),
  CONSTRAINT topup_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id),
  CONSTRAINT topup_is_of_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits (app_id, id),
  CONSTRAINT topup_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections (app_id, id),
  CONSTRAINT session_sells_one_topup UNIQUE (app_id, session_id),
  CONSTRAINT topup_amount_is_positive CHECK (amount_nanocredits > 0),
  CONSTRAINT topup_status_is_known CHECK (status IN ('open', 'processing', 'paid', 'failed', 'expired', 'set_aside'))
);

--bun:split

CREATE INDEX topups_by_wallet ON topups (app_id, wallet_id, id);

--bun:split

ALTER TABLE topups ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE topups FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON topups
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON topups TO purser_app;

--bun:split

-- Money that the provider has confirmed, and free periods. The source is the key
-- under which the ledger takes it, once and for ever.
CREATE TABLE provider_payments (
  app_id          uuid    NOT NULL,
  source_kind     text    NOT NULL,
  source_id       text    COLLATE "C" NOT NULL,
  org_id          uuid    NOT NULL,
  wallet_id       uuid    NOT NULL,
  subscription_id uuid,             -- NULL for a top-up
  amount_cents    bigint  NOT NULL,
  currency        text    NOT NULL, -- empty for a free period
  intent_id       text    COLLATE "C",
  charge_id       text    COLLATE "C",
  plan_id         uuid,
  period_start    bigint,
  period_end      bigint,
  free            boolean NOT NULL,
  refunded_cents  bigint  NOT NULL DEFAULT 0,
  disputed_cents  bigint  NOT NULL DEFAULT 0,
  created_at      bigint  NOT NULL,
  CONSTRAINT payment_is_taken_once PRIMARY KEY (app_id, source_kind, source_id),
  CONSTRAINT payment_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id),
  CONSTRAINT payment_is_of_a_subscription FOREIGN KEY (app_id, subscription_id) REFERENCES subscriptions (app_id, id),
  CONSTRAINT source_kind_is_known CHECK (source_kind IN ('invoice', 'session', 'free_period'))
);

--bun:split

CREATE INDEX payments_by_wallet ON provider_payments (app_id, wallet_id);

--bun:split

CREATE INDEX payments_by_intent ON provider_payments (app_id, intent_id) WHERE intent_id IS NOT NULL;

--bun:split

CREATE INDEX payments_by_charge ON provider_payments (app_id, charge_id) WHERE charge_id IS NOT NULL;

--bun:split

ALTER TABLE provider_payments ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE provider_payments FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON provider_payments
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON provider_payments TO purser_app;

--bun:split

-- What a payment brought of each credit, and what of that was taken back since.
CREATE TABLE payment_credits (
  app_id                 uuid          NOT NULL,
  source_kind            text          NOT NULL,
  source_id              text          COLLATE "C" NOT NULL,
  credit_id              uuid          NOT NULL,
  org_id                 uuid          NOT NULL,
  position               integer       NOT NULL, -- in the plan's list
  amount_nanocredits     numeric(19,0) NOT NULL,
  taken_back_nanocredits numeric(19,0) NOT NULL DEFAULT 0,
  PRIMARY KEY (app_id, source_kind, source_id, credit_id),
  CONSTRAINT credits_came_with_a_payment FOREIGN KEY (app_id, source_kind, source_id) REFERENCES provider_payments (app_id, source_kind, source_id),
  CONSTRAINT payment_credit_is_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits (app_id, id),
  CONSTRAINT no_more_is_taken_back_than_came CHECK (taken_back_nanocredits >= 0 AND taken_back_nanocredits <= amount_nanocredits)
);

--bun:split

ALTER TABLE payment_credits ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE payment_credits FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON payment_credits
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON payment_credits TO purser_app;

--bun:split

-- The payment that an entry comes from. The caller's deposits have none.
ALTER TABLE journal
  ADD COLUMN source_kind text,
  ADD COLUMN source_id   text COLLATE "C",
  ADD CONSTRAINT source_is_whole CHECK ((source_kind IS NULL) = (source_id IS NULL));

--bun:split

-- Behind the payment's own key, and whatever else goes wrong: one payment brings a
-- credit once.
CREATE UNIQUE INDEX payment_brings_a_credit_once ON journal (app_id, source_kind, source_id, credit_id)
  WHERE kind IN ('grant', 'top-up');

--bun:split

-- Conversations with the provider. A row is there before the first call, with all
-- that the calls will say.
CREATE TABLE provider_ops (
  app_id          uuid    NOT NULL,
  id              uuid    NOT NULL,
  org_id          uuid    NOT NULL,
  kind            text    NOT NULL,
  idempotency_key text    COLLATE "C" NOT NULL,
  fingerprint     bytea   NOT NULL,
  parameters      jsonb   NOT NULL,
  step            text    NOT NULL,
  attempt         integer NOT NULL,
  state           text    NOT NULL,
  created_at      bigint  NOT NULL,
  attempted_at    bigint,           -- NULL until the step was sent
  wallet_id       uuid,             -- whose it is about; NULL for a plan
  change_id       uuid,             -- the change, or the top-up, that it asks for
  answer          jsonb,            -- the subscription that the caller was told; NULL while it runs
  result          jsonb,            -- what else the caller was told
  error           text,             -- why it failed
  PRIMARY KEY (app_id, id),
  CONSTRAINT intent_is_kept_once UNIQUE (app_id, kind, idempotency_key),
  CONSTRAINT op_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id),
  CONSTRAINT op_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets (app_id, id),
  CONSTRAINT op_state_is_known CHECK (state IN ('running', 'done', 'failed')),
  CONSTRAINT fingerprint_is_sha256 CHECK (length(fingerprint) = 32),
  CONSTRAINT attempts_count_from_one CHECK (attempt > 0)
);

--bun:split

ALTER TABLE provider_ops ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE provider_ops FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON provider_ops
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON provider_ops TO purser_app;

--bun:split

-- Which webhooks came. A webhook only wakes somebody up, so what it says is not kept.
CREATE TABLE webhook_events (
  app_id        uuid    NOT NULL,
  connection_id uuid    NOT NULL,
  event_id      text    COLLATE "C" NOT NULL,
  id            uuid    NOT NULL, -- ours, by which they are listed
  org_id        uuid    NOT NULL,
  type          text    NOT NULL,
  object_id     text    NOT NULL,
  api_version   text    NOT NULL,
  live          boolean NOT NULL,
  outcome       text    NOT NULL,
  received_at   bigint  NOT NULL,
  CONSTRAINT webhook_is_taken_once PRIMARY KEY (app_id, connection_id, event_id),
  CONSTRAINT webhook_is_listed_once UNIQUE (app_id, id),
  CONSTRAINT webhook_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections (app_id, id)
);

--bun:split

ALTER TABLE webhook_events ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE webhook_events FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON webhook_events
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT ON webhook_events TO purser_app;

--bun:split

-- What is to be done with the provider, or without it, and when. A row goes once it
-- is done; its version tells whoever did it whether it was asked for again meanwhile.
CREATE TABLE work_queue (
  app_id     uuid    NOT NULL,
  kind       text    NOT NULL,
  object     text    COLLATE "C" NOT NULL, -- what it is about; empty for the application
  org_id     uuid    NOT NULL,
  due_at     bigint  NOT NULL,             -- by the application's clock
  version    uuid    NOT NULL,             -- another one each time it is asked for
  tries      integer NOT NULL DEFAULT 0,   -- that failed, in a row
  last_error text,
  PRIMARY KEY (app_id, kind, object),
  CONSTRAINT work_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id)
);

--bun:split

CREATE INDEX work_queue_by_time ON work_queue (app_id, due_at);

--bun:split

ALTER TABLE work_queue ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE work_queue FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON work_queue
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE, DELETE ON work_queue TO purser_app;

--bun:split

-- Who may speak with the provider about something. The fence grows with every
-- holder: what one who was too slow has found out is refused.
CREATE TABLE leases (
  app_id     uuid   NOT NULL,
  name       text   COLLATE "C" NOT NULL,
  org_id     uuid   NOT NULL,
  holder     uuid   NOT NULL,
  held_until bigint NOT NULL, -- by the real clock
  fence      bigint NOT NULL,
  PRIMARY KEY (app_id, name),
  CONSTRAINT lease_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id)
);

--bun:split

ALTER TABLE leases ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE leases FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON leases
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON leases TO purser_app;

--bun:split

-- What a person should look at.
CREATE TABLE alerts (
  app_id      uuid   NOT NULL,
  kind        text   NOT NULL,
  object_id   text   COLLATE "C" NOT NULL,
  id          uuid   NOT NULL, -- ours, by which they are listed
  org_id      uuid   NOT NULL,
  wallet_id   uuid,
  created_at  bigint NOT NULL,
  resolved_at bigint,
  PRIMARY KEY (app_id, kind, object_id),
  CONSTRAINT alert_is_listed_once UNIQUE (app_id, id),
  CONSTRAINT alert_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state (app_id)
);

--bun:split

ALTER TABLE alerts ENABLE ROW LEVEL SECURITY;

--bun:split

ALTER TABLE alerts FORCE ROW LEVEL SECURITY;

--bun:split

CREATE POLICY tenant ON alerts
  USING (coalesce(app_id = ANY (nullif(current_setting('purser.app_ids', true), '')::uuid[]), false));

--bun:split

GRANT SELECT, INSERT, UPDATE ON alerts TO purser_app;
