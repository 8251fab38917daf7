-- The schema after all migrations, from Postgres's catalog. Written by
-- go test ./store -run TestTheSchemaIsAsRecorded -update

CREATE TABLE active_days (
  app_id uuid NOT NULL,
  day bigint NOT NULL,
  org_id uuid NOT NULL,
  sketch bytea NOT NULL
);
ALTER TABLE active_days ADD CONSTRAINT active_days_pkey PRIMARY KEY (app_id, day);
ALTER TABLE active_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE active_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON active_days FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON active_days TO purser_app;
CREATE TABLE activity_hours (
  app_id uuid NOT NULL,
  hour bigint NOT NULL,
  org_id uuid NOT NULL,
  uses bigint NOT NULL,
  denials bigint NOT NULL,
  requests bigint NOT NULL,
  failures bigint NOT NULL,
  oldest_tx uuid,
  newest_tx uuid
);
ALTER TABLE activity_hours ADD CONSTRAINT activity_hours_pkey PRIMARY KEY (app_id, hour);
ALTER TABLE activity_hours ENABLE ROW LEVEL SECURITY;
ALTER TABLE activity_hours FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON activity_hours FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON activity_hours TO purser_app;
CREATE TABLE adjustments (
  app_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  org_id uuid NOT NULL,
  reason text NOT NULL,
  user_id uuid NOT NULL
);
ALTER TABLE adjustments ADD CONSTRAINT adjustment_has_a_reason CHECK ((reason <> ''::text));
ALTER TABLE adjustments ADD CONSTRAINT adjustment_is_an_entry FOREIGN KEY (app_id, entry_id) REFERENCES journal(app_id, id);
ALTER TABLE adjustments ADD CONSTRAINT adjustments_pkey PRIMARY KEY (app_id, entry_id);
ALTER TABLE adjustments ENABLE ROW LEVEL SECURITY;
ALTER TABLE adjustments FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON adjustments FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON adjustments TO purser_app;
CREATE TABLE alert_marks (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  rule_id uuid NOT NULL,
  threshold numeric(19,0) NOT NULL,
  org_id uuid NOT NULL,
  armed boolean NOT NULL,
  fired_at bigint NOT NULL,
  period_start bigint NOT NULL
);
ALTER TABLE alert_marks ADD CONSTRAINT alert_marks_pkey PRIMARY KEY (app_id, wallet_id, rule_id, threshold);
ALTER TABLE alert_marks ADD CONSTRAINT mark_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE alert_marks ENABLE ROW LEVEL SECURITY;
ALTER TABLE alert_marks FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON alert_marks FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON alert_marks TO purser_app;
CREATE TABLE alert_rules (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  key text COLLATE "C" NOT NULL,
  kind text NOT NULL,
  credit_id uuid,
  feature_id uuid,
  watched_key text COLLATE "C" NOT NULL,
  thresholds numeric(19,0)[] NOT NULL,
  rearm_percent integer NOT NULL,
  quiet_hours integer NOT NULL,
  identity text COLLATE "C",
  created_at bigint NOT NULL
);
ALTER TABLE alert_rules ADD CONSTRAINT alert_rule_is_of_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits(app_id, id);
ALTER TABLE alert_rules ADD CONSTRAINT alert_rule_is_of_a_feature FOREIGN KEY (app_id, feature_id) REFERENCES features(app_id, id);
ALTER TABLE alert_rules ADD CONSTRAINT alert_rule_key_is_unique UNIQUE (app_id, key);
ALTER TABLE alert_rules ADD CONSTRAINT alert_rule_watches_one_thing CHECK ((((kind = 'balance'::text) AND (credit_id IS NOT NULL) AND (feature_id IS NULL)) OR ((kind = 'allowance'::text) AND (feature_id IS NOT NULL) AND (credit_id IS NULL))));
ALTER TABLE alert_rules ADD CONSTRAINT alert_rules_pkey PRIMARY KEY (app_id, id);
ALTER TABLE alert_rules ENABLE ROW LEVEL SECURITY;
ALTER TABLE alert_rules FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON alert_rules FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON alert_rules TO purser_app;
CREATE TABLE alerts (
  app_id uuid NOT NULL,
  kind text NOT NULL,
  object_id text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid,
  created_at bigint NOT NULL,
  resolved_at bigint
);
ALTER TABLE alerts ADD CONSTRAINT alert_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE alerts ADD CONSTRAINT alert_is_listed_once UNIQUE (app_id, id);
ALTER TABLE alerts ADD CONSTRAINT alerts_pkey PRIMARY KEY (app_id, kind, object_id);
ALTER TABLE alerts ENABLE ROW LEVEL SECURITY;
ALTER TABLE alerts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON alerts FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON alerts TO purser_app;
CREATE TABLE api_keys (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  hash bytea NOT NULL,
  name text NOT NULL,
  preset text NOT NULL,
  permissions text[] NOT NULL,
  live boolean NOT NULL,
  last_four text NOT NULL,
  created_by uuid,
  created_at bigint NOT NULL,
  expires_at bigint,
  revoked boolean NOT NULL DEFAULT false,
  revoked_at bigint,
  last_used_at bigint,
  replaces uuid,
  replaced_by uuid,
  expiry_announced_at bigint,
  archived_at bigint
);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_pkey PRIMARY KEY (app_id, id);
ALTER TABLE api_keys ADD CONSTRAINT key_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON api_keys FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON api_keys TO purser_app;
CREATE TABLE app_state (
  app_id uuid NOT NULL,
  org_id uuid NOT NULL,
  epoch bigint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  clock_offset bigint NOT NULL DEFAULT 0
);
ALTER TABLE app_state ADD CONSTRAINT app_state_pkey PRIMARY KEY (app_id);
ALTER TABLE app_state ENABLE ROW LEVEL SECURITY;
ALTER TABLE app_state FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON app_state FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON app_state TO purser_app;
CREATE TABLE applications (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  slug text COLLATE "C" NOT NULL,
  name text NOT NULL,
  is_live boolean NOT NULL,
  deployment_url text,
  created_at bigint NOT NULL,
  archived_at bigint
);
ALTER TABLE applications ADD CONSTRAINT application_belongs_to_an_organization FOREIGN KEY (org_id) REFERENCES organizations(id);
ALTER TABLE applications ADD CONSTRAINT application_slug_is_unique_in_its_organization UNIQUE (org_id, slug);
ALTER TABLE applications ADD CONSTRAINT applications_pkey PRIMARY KEY (id);
GRANT INSERT, SELECT, UPDATE ON applications TO purser_app;
CREATE TABLE audit_entries (
  org_id uuid NOT NULL,
  number bigint NOT NULL,
  at bigint NOT NULL,
  user_id uuid,
  actor text NOT NULL,
  address text NOT NULL,
  request_id uuid,
  application uuid,
  action text NOT NULL,
  target text NOT NULL,
  before text NOT NULL,
  after text NOT NULL,
  seal bytea NOT NULL
);
ALTER TABLE audit_entries ADD CONSTRAINT audit_entries_pkey PRIMARY KEY (org_id, number);
ALTER TABLE audit_entries ADD CONSTRAINT entry_is_numbered_from_one CHECK ((number > 0));
ALTER TABLE audit_entries ADD CONSTRAINT entry_is_of_an_organization FOREIGN KEY (org_id) REFERENCES organizations(id);
ALTER TABLE audit_entries ADD CONSTRAINT seal_is_sha256 CHECK ((length(seal) = 32));
GRANT INSERT, SELECT ON audit_entries TO purser_app;
CREATE TABLE audit_heads (
  org_id uuid NOT NULL,
  number bigint NOT NULL,
  seal bytea NOT NULL
);
ALTER TABLE audit_heads ADD CONSTRAINT audit_heads_pkey PRIMARY KEY (org_id);
ALTER TABLE audit_heads ADD CONSTRAINT head_is_of_an_organization FOREIGN KEY (org_id) REFERENCES organizations(id);
GRANT INSERT, SELECT, UPDATE ON audit_heads TO purser_app;
CREATE TABLE balances (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL,
  amount_nanocredits nanocredits NOT NULL,
  debt_nanocredits nanocredits NOT NULL DEFAULT 0
) WITH (fillfactor=75, autovacuum_analyze_scale_factor=1);
ALTER TABLE balances ADD CONSTRAINT balance_belongs_to_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE balances ADD CONSTRAINT balance_is_of_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits(app_id, id);
ALTER TABLE balances ADD CONSTRAINT balances_pkey PRIMARY KEY (app_id, wallet_id, credit_id);
ALTER TABLE balances ENABLE ROW LEVEL SECURITY;
ALTER TABLE balances FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON balances FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON balances TO purser_app;
CREATE TABLE billed_periods (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  feature_id uuid NOT NULL,
  period_start bigint NOT NULL,
  period_end bigint NOT NULL,
  entity_id text COLLATE "C" NOT NULL,
  org_id uuid NOT NULL,
  tx_id uuid NOT NULL
);
ALTER TABLE billed_periods ADD CONSTRAINT period_is_billed_once PRIMARY KEY (app_id, wallet_id, feature_id, period_start, period_end, entity_id);
ALTER TABLE billed_periods ENABLE ROW LEVEL SECURITY;
ALTER TABLE billed_periods FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON billed_periods FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT ON billed_periods TO purser_app;
CREATE TABLE connection_directory (
  connection_id uuid NOT NULL,
  org_id uuid NOT NULL,
  app_id uuid NOT NULL
);
ALTER TABLE connection_directory ADD CONSTRAINT connection_directory_pkey PRIMARY KEY (connection_id);
GRANT INSERT, SELECT ON connection_directory TO purser_app;
CREATE TABLE counters (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  feature_id uuid NOT NULL,
  period_start bigint NOT NULL,
  period_end bigint NOT NULL,
  org_id uuid NOT NULL,
  used bigint NOT NULL
) WITH (fillfactor=75, autovacuum_analyze_scale_factor=1);
ALTER TABLE counters ADD CONSTRAINT counters_pkey PRIMARY KEY (app_id, wallet_id, feature_id, period_start, period_end);
ALTER TABLE counters ADD CONSTRAINT used_is_not_negative CHECK ((used >= 0));
ALTER TABLE counters ENABLE ROW LEVEL SECURITY;
ALTER TABLE counters FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON counters FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON counters TO purser_app;
CREATE TABLE credits (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  key text COLLATE "C" NOT NULL,
  name text NOT NULL,
  unit text NOT NULL,
  revision bigint NOT NULL,
  created_at bigint NOT NULL
);
ALTER TABLE credits ADD CONSTRAINT credit_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE credits ADD CONSTRAINT credit_key_is_unique_in_its_application UNIQUE (app_id, key);
ALTER TABLE credits ADD CONSTRAINT credit_revision_is_positive CHECK ((revision > 0));
ALTER TABLE credits ADD CONSTRAINT credits_pkey PRIMARY KEY (app_id, id);
ALTER TABLE credits ENABLE ROW LEVEL SECURITY;
ALTER TABLE credits FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON credits FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON credits TO purser_app;
CREATE TABLE debtors (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL
);
ALTER TABLE debtors ADD CONSTRAINT debtors_pkey PRIMARY KEY (app_id, wallet_id, credit_id);
ALTER TABLE debtors ENABLE ROW LEVEL SECURITY;
ALTER TABLE debtors FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON debtors FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT ON debtors TO purser_app;
CREATE TABLE deleted_endpoints (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  deleted_at bigint NOT NULL
);
ALTER TABLE deleted_endpoints ADD CONSTRAINT deleted_endpoints_pkey PRIMARY KEY (app_id, id);
ALTER TABLE deleted_endpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE deleted_endpoints FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON deleted_endpoints FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT ON deleted_endpoints TO purser_app;
CREATE TABLE deliveries (
  app_id uuid NOT NULL,
  endpoint_id uuid NOT NULL,
  notification_id uuid NOT NULL,
  org_id uuid NOT NULL,
  seq bigint NOT NULL,
  previous_seq bigint NOT NULL,
  status text NOT NULL DEFAULT 'pending'::text,
  attempts integer NOT NULL DEFAULT 0,
  due_at bigint NOT NULL,
  created_at bigint NOT NULL,
  refusals integer NOT NULL DEFAULT 0,
  tried_at bigint NOT NULL DEFAULT 0
);
ALTER TABLE deliveries ADD CONSTRAINT deliveries_pkey PRIMARY KEY (app_id, endpoint_id, notification_id);
ALTER TABLE deliveries ADD CONSTRAINT previous_is_earlier CHECK (((previous_seq < seq) OR (seq = 0)));
ALTER TABLE deliveries ADD CONSTRAINT status_is_known CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text])));
CREATE INDEX deliveries_by_notification ON public.deliveries USING btree (app_id, notification_id);
CREATE INDEX deliveries_due ON public.deliveries USING btree (app_id, endpoint_id, due_at, seq) WHERE (status = 'pending'::text);
CREATE INDEX deliveries_open ON public.deliveries USING btree (app_id, endpoint_id, notification_id) WHERE (status <> 'delivered'::text);
ALTER TABLE deliveries ENABLE ROW LEVEL SECURITY;
ALTER TABLE deliveries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON deliveries FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON deliveries TO purser_app;
CREATE TABLE delivery_attempts (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  endpoint_id uuid NOT NULL,
  notification_id uuid NOT NULL,
  url text NOT NULL,
  status integer,
  error text NOT NULL,
  answer text NOT NULL,
  started_at bigint NOT NULL,
  took_ms integer NOT NULL
);
ALTER TABLE delivery_attempts ADD CONSTRAINT delivery_attempts_pkey PRIMARY KEY (app_id, id);
CREATE INDEX attempts_by_delivery ON public.delivery_attempts USING btree (app_id, notification_id, endpoint_id, id);
ALTER TABLE delivery_attempts ENABLE ROW LEVEL SECURITY;
ALTER TABLE delivery_attempts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON delivery_attempts FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON delivery_attempts TO purser_app;
CREATE TABLE denial_days (
  app_id uuid NOT NULL,
  day bigint NOT NULL,
  feature_id uuid NOT NULL,
  reason text NOT NULL,
  org_id uuid NOT NULL,
  uses bigint NOT NULL,
  checks bigint NOT NULL
);
ALTER TABLE denial_days ADD CONSTRAINT denial_days_pkey PRIMARY KEY (app_id, day, feature_id, reason);
ALTER TABLE denial_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE denial_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON denial_days FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON denial_days TO purser_app;
CREATE TABLE denial_records (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  request_id uuid NOT NULL,
  key_id uuid NOT NULL,
  at bigint NOT NULL,
  identity text COLLATE "C" NOT NULL,
  feature_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  reason text NOT NULL,
  gate text NOT NULL,
  event_id text,
  entity_id text,
  quantity bigint NOT NULL,
  billable bigint NOT NULL,
  pricing_mode text NOT NULL,
  cost_nanocredits nanocredits NOT NULL,
  quantity_per_unit bigint NOT NULL,
  basis_points bigint NOT NULL,
  amount_nanocredits nanocredits NOT NULL,
  balance_nanocredits nanocredits NOT NULL,
  debt_nanocredits nanocredits NOT NULL,
  allowance_limit bigint,
  allowance_used bigint,
  allowance_start bigint,
  allowance_end bigint,
  allowance_overage text
);
ALTER TABLE denial_records ADD CONSTRAINT denial_records_pkey PRIMARY KEY (app_id, id);
CREATE INDEX denial_records_by_identity ON public.denial_records USING btree (app_id, identity, id);
CREATE INDEX denial_records_by_request ON public.denial_records USING btree (app_id, request_id);
ALTER TABLE denial_records ENABLE ROW LEVEL SECURITY;
ALTER TABLE denial_records FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON denial_records FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON denial_records TO purser_app;
CREATE TABLE entry_days (
  app_id uuid NOT NULL,
  day bigint NOT NULL,
  kind text NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL,
  entries bigint NOT NULL,
  came_nanocredits numeric(38,0) NOT NULL,
  taken_nanocredits numeric(38,0) NOT NULL
);
ALTER TABLE entry_days ADD CONSTRAINT entry_days_pkey PRIMARY KEY (app_id, day, kind, credit_id);
ALTER TABLE entry_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE entry_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON entry_days FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON entry_days TO purser_app;
CREATE TABLE event_properties (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  seq bigint NOT NULL,
  org_id uuid NOT NULL,
  properties jsonb NOT NULL
);
ALTER TABLE event_properties ADD CONSTRAINT event_properties_pkey PRIMARY KEY (app_id, wallet_id, seq);
ALTER TABLE event_properties ADD CONSTRAINT properties_belong_to_an_event FOREIGN KEY (app_id, wallet_id, seq) REFERENCES usage_events(app_id, wallet_id, seq);
ALTER TABLE event_properties ENABLE ROW LEVEL SECURITY;
ALTER TABLE event_properties FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON event_properties FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT ON event_properties TO purser_app;
CREATE TABLE feature_references (
  app_id uuid NOT NULL,
  feature_id uuid NOT NULL,
  holder_id uuid NOT NULL,
  org_id uuid NOT NULL,
  multiplied boolean NOT NULL
);
ALTER TABLE feature_references ADD CONSTRAINT feature_references_pkey PRIMARY KEY (app_id, feature_id, holder_id);
ALTER TABLE feature_references ADD CONSTRAINT reference_is_to_a_feature FOREIGN KEY (app_id, feature_id) REFERENCES features(app_id, id);
CREATE INDEX feature_references_by_holder ON public.feature_references USING btree (app_id, holder_id);
ALTER TABLE feature_references ENABLE ROW LEVEL SECURITY;
ALTER TABLE feature_references FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON feature_references FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT ON feature_references TO purser_app;
CREATE TABLE features (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  key text COLLATE "C" NOT NULL,
  name text NOT NULL,
  unit text NOT NULL,
  credit_id uuid NOT NULL,
  cost_nanocredits numeric(19,0) NOT NULL,
  quantity_per_unit bigint NOT NULL,
  pricing_mode text NOT NULL,
  deduplication_period text NOT NULL,
  deduplication_locked boolean NOT NULL DEFAULT false,
  revision bigint NOT NULL,
  price_number bigint NOT NULL,
  created_at bigint NOT NULL
);
ALTER TABLE features ADD CONSTRAINT cost_is_not_negative CHECK ((cost_nanocredits >= (0)::numeric));
ALTER TABLE features ADD CONSTRAINT deduplication_period_is_known CHECK ((deduplication_period = ANY (ARRAY['none'::text, 'day'::text, 'week'::text, 'month'::text, 'billing'::text])));
ALTER TABLE features ADD CONSTRAINT feature_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE features ADD CONSTRAINT feature_is_priced_in_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits(app_id, id);
ALTER TABLE features ADD CONSTRAINT feature_key_is_unique_in_its_application UNIQUE (app_id, key);
ALTER TABLE features ADD CONSTRAINT feature_revision_is_positive CHECK ((revision > 0));
ALTER TABLE features ADD CONSTRAINT features_pkey PRIMARY KEY (app_id, id);
ALTER TABLE features ADD CONSTRAINT pricing_mode_is_known CHECK ((pricing_mode = ANY (ARRAY['fixed'::text, 'callback'::text])));
ALTER TABLE features ADD CONSTRAINT quantity_per_unit_is_positive CHECK ((quantity_per_unit > 0));
ALTER TABLE features ENABLE ROW LEVEL SECURITY;
ALTER TABLE features FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON features FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON features TO purser_app;
CREATE TABLE feeds (
  app_id uuid NOT NULL,
  org_id uuid NOT NULL,
  last_seq bigint NOT NULL DEFAULT 0,
  oldest_seq bigint NOT NULL DEFAULT 1,
  verified_seq bigint NOT NULL DEFAULT 0,
  mailed_seq bigint NOT NULL DEFAULT 0
);
ALTER TABLE feeds ADD CONSTRAINT feed_keeps_what_it_numbered CHECK (((oldest_seq >= 1) AND (last_seq >= (oldest_seq - 1))));
ALTER TABLE feeds ADD CONSTRAINT feeds_pkey PRIMARY KEY (app_id);
ALTER TABLE feeds ENABLE ROW LEVEL SECURITY;
ALTER TABLE feeds FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON feeds FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON feeds TO purser_app;
CREATE TABLE identity_changes (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  kind text NOT NULL,
  from_identity text COLLATE "C",
  to_identity text COLLATE "C",
  reason text,
  idempotency_key text COLLATE "C" NOT NULL,
  user_id uuid,
  created_at bigint NOT NULL,
  settled boolean NOT NULL DEFAULT false
);
ALTER TABLE identity_changes ADD CONSTRAINT erasure_has_a_reason CHECK (((kind = 'rename'::text) OR (reason <> ''::text)));
ALTER TABLE identity_changes ADD CONSTRAINT identity_change_is_known CHECK ((kind = ANY (ARRAY['rename'::text, 'erasure'::text])));
ALTER TABLE identity_changes ADD CONSTRAINT identity_change_is_made_once UNIQUE (app_id, kind, idempotency_key);
ALTER TABLE identity_changes ADD CONSTRAINT identity_change_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE identity_changes ADD CONSTRAINT identity_changes_pkey PRIMARY KEY (app_id, id);
CREATE INDEX identity_changes_by_wallet ON public.identity_changes USING btree (app_id, wallet_id, id);
CREATE INDEX identity_changes_to_settle ON public.identity_changes USING btree (app_id) WHERE (NOT settled);
ALTER TABLE identity_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE identity_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON identity_changes FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON identity_changes TO purser_app;
CREATE TABLE invitations (
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  hash bytea NOT NULL,
  note text NOT NULL,
  role text NOT NULL,
  permissions text[] NOT NULL,
  invited_by uuid NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  closed_at bigint,
  accepted_by uuid,
  email text
);
ALTER TABLE invitations ADD CONSTRAINT invitation_hash_is_sha256 CHECK ((length(hash) = 32));
ALTER TABLE invitations ADD CONSTRAINT invitation_hash_is_unique UNIQUE (hash);
ALTER TABLE invitations ADD CONSTRAINT invitation_is_accepted_by_a_user FOREIGN KEY (accepted_by) REFERENCES users(id);
ALTER TABLE invitations ADD CONSTRAINT invitation_is_by_a_user FOREIGN KEY (invited_by) REFERENCES users(id);
ALTER TABLE invitations ADD CONSTRAINT invitation_is_of_an_organization FOREIGN KEY (org_id) REFERENCES organizations(id);
ALTER TABLE invitations ADD CONSTRAINT invitations_pkey PRIMARY KEY (id);
CREATE INDEX invitations_by_organization ON public.invitations USING btree (org_id, id);
GRANT INSERT, SELECT, UPDATE ON invitations TO purser_app;
CREATE TABLE journal (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  seq bigint NOT NULL,
  kind text NOT NULL,
  credit_id uuid NOT NULL,
  delta_nanocredits numeric(20,0) NOT NULL,
  balance_after numeric(19,0) NOT NULL,
  debt_after numeric(19,0) NOT NULL,
  idempotency_key text COLLATE "C",
  created_at bigint NOT NULL,
  source_kind text,
  source_id text COLLATE "C"
);
ALTER TABLE journal ADD CONSTRAINT balance_after_is_not_negative CHECK ((balance_after >= (0)::numeric));
ALTER TABLE journal ADD CONSTRAINT debt_after_is_not_negative CHECK ((debt_after >= (0)::numeric));
ALTER TABLE journal ADD CONSTRAINT entry_belongs_to_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE journal ADD CONSTRAINT entry_has_its_place_in_the_wallet UNIQUE (app_id, wallet_id, seq);
ALTER TABLE journal ADD CONSTRAINT entry_is_of_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits(app_id, id);
ALTER TABLE journal ADD CONSTRAINT idempotency_key_is_unique_in_its_application UNIQUE (app_id, idempotency_key);
ALTER TABLE journal ADD CONSTRAINT journal_pkey PRIMARY KEY (app_id, id);
ALTER TABLE journal ADD CONSTRAINT kind_is_known CHECK ((kind = ANY (ARRAY['deposit'::text, 'grant'::text, 'top-up'::text, 'refund'::text, 'dispute'::text, 'adjustment'::text, 'reversal'::text, 'transfer'::text])));
ALTER TABLE journal ADD CONSTRAINT source_is_whole CHECK (((source_kind IS NULL) = (source_id IS NULL)));
CREATE INDEX journal_by_kind ON public.journal USING btree (app_id, kind, credit_id, id);
CREATE UNIQUE INDEX payment_brings_a_credit_once ON public.journal USING btree (app_id, source_kind, source_id, credit_id) WHERE (kind = ANY (ARRAY['grant'::text, 'top-up'::text]));
ALTER TABLE journal ENABLE ROW LEVEL SECURITY;
ALTER TABLE journal FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON journal FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON journal TO purser_app;
CREATE TABLE key_directory (
  hash bytea NOT NULL,
  org_id uuid NOT NULL,
  app_id uuid NOT NULL,
  key_id uuid NOT NULL
);
ALTER TABLE key_directory ADD CONSTRAINT hash_is_sha256 CHECK ((length(hash) = 32));
ALTER TABLE key_directory ADD CONSTRAINT key_directory_pkey PRIMARY KEY (hash);
GRANT INSERT, SELECT ON key_directory TO purser_app;
CREATE TABLE leases (
  app_id uuid NOT NULL,
  name text COLLATE "C" NOT NULL,
  org_id uuid NOT NULL,
  holder uuid NOT NULL,
  held_until bigint NOT NULL,
  fence bigint NOT NULL
);
ALTER TABLE leases ADD CONSTRAINT lease_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE leases ADD CONSTRAINT leases_pkey PRIMARY KEY (app_id, name);
ALTER TABLE leases ENABLE ROW LEVEL SECURITY;
ALTER TABLE leases FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON leases FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON leases TO purser_app;
CREATE TABLE liability_days (
  app_id uuid NOT NULL,
  day bigint NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL,
  held_nanocredits numeric(38,0) NOT NULL,
  debt_nanocredits numeric(38,0) NOT NULL,
  at bigint NOT NULL
);
ALTER TABLE liability_days ADD CONSTRAINT liability_days_pkey PRIMARY KEY (app_id, day, credit_id);
ALTER TABLE liability_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE liability_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON liability_days FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON liability_days TO purser_app;
CREATE TABLE login_failures (
  subject bytea NOT NULL,
  failures integer NOT NULL,
  failed_at bigint NOT NULL
);
ALTER TABLE login_failures ADD CONSTRAINT login_failures_pkey PRIMARY KEY (subject);
ALTER TABLE login_failures ADD CONSTRAINT subject_is_sha256 CHECK ((length(subject) = 32));
CREATE INDEX login_failures_by_age ON public.login_failures USING btree (failed_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON login_failures TO purser_app;
CREATE TABLE mail_budgets (
  user_id uuid NOT NULL,
  since bigint NOT NULL,
  sent integer NOT NULL,
  notices integer NOT NULL DEFAULT 0
);
ALTER TABLE mail_budgets ADD CONSTRAINT budget_is_of_a_user FOREIGN KEY (user_id) REFERENCES users(id);
ALTER TABLE mail_budgets ADD CONSTRAINT mail_budgets_pkey PRIMARY KEY (user_id);
GRANT INSERT, SELECT, UPDATE ON mail_budgets TO purser_app;
CREATE TABLE mails (
  id uuid NOT NULL,
  kind text NOT NULL,
  sealed bytea NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  due_at bigint NOT NULL,
  tries integer NOT NULL
);
ALTER TABLE mails ADD CONSTRAINT mail_expires_later CHECK ((expires_at > created_at));
ALTER TABLE mails ADD CONSTRAINT mail_has_a_kind CHECK ((kind <> ''::text));
ALTER TABLE mails ADD CONSTRAINT mails_pkey PRIMARY KEY (id);
CREATE INDEX mails_by_age ON public.mails USING btree (created_at);
CREATE INDEX mails_by_due ON public.mails USING btree (due_at);
GRANT DELETE, INSERT, SELECT, UPDATE ON mails TO purser_app;
CREATE TABLE members (
  org_id uuid NOT NULL,
  user_id uuid NOT NULL,
  role text NOT NULL,
  permissions text[] NOT NULL,
  created_at bigint NOT NULL,
  mail_alerts text,
  mail_webhooks text,
  mail_keys text
);
ALTER TABLE members ADD CONSTRAINT mail_alerts_is_known CHECK ((mail_alerts = ANY (ARRAY['none'::text, 'live'::text, 'all'::text])));
ALTER TABLE members ADD CONSTRAINT mail_keys_is_known CHECK ((mail_keys = ANY (ARRAY['none'::text, 'live'::text, 'all'::text])));
ALTER TABLE members ADD CONSTRAINT mail_webhooks_is_known CHECK ((mail_webhooks = ANY (ARRAY['none'::text, 'live'::text, 'all'::text])));
ALTER TABLE members ADD CONSTRAINT member_belongs_to_an_organization FOREIGN KEY (org_id) REFERENCES organizations(id);
ALTER TABLE members ADD CONSTRAINT member_is_a_user FOREIGN KEY (user_id) REFERENCES users(id);
ALTER TABLE members ADD CONSTRAINT members_pkey PRIMARY KEY (org_id, user_id);
CREATE INDEX members_by_user ON public.members USING btree (user_id);
GRANT DELETE, INSERT, SELECT, UPDATE ON members TO purser_app;
CREATE TABLE notifications (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  type text COLLATE "C" NOT NULL,
  wallet_id uuid,
  data jsonb NOT NULL,
  created_at bigint NOT NULL,
  seq bigint,
  test boolean NOT NULL DEFAULT false
);
ALTER TABLE notifications ADD CONSTRAINT notifications_pkey PRIMARY KEY (app_id, id);
ALTER TABLE notifications ADD CONSTRAINT seq_is_given_once UNIQUE (app_id, seq);
ALTER TABLE notifications ADD CONSTRAINT seq_is_positive CHECK ((seq > 0));
ALTER TABLE notifications ADD CONSTRAINT test_has_no_seq CHECK (((NOT test) OR (seq IS NULL)));
CREATE INDEX notifications_by_wallet ON public.notifications USING btree (app_id, wallet_id, seq) WHERE (wallet_id IS NOT NULL);
CREATE INDEX notifications_of_tests ON public.notifications USING btree (app_id, created_at) WHERE test;
CREATE INDEX notifications_to_number ON public.notifications USING btree (app_id, id) WHERE ((seq IS NULL) AND (NOT test));
ALTER TABLE notifications ENABLE ROW LEVEL SECURITY;
ALTER TABLE notifications FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON notifications FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON notifications TO purser_app;
CREATE TABLE organizations (
  id uuid NOT NULL,
  slug text COLLATE "C" NOT NULL,
  name text NOT NULL,
  created_at bigint NOT NULL,
  command_name text,
  requires_factor boolean NOT NULL DEFAULT false,
  archived_at bigint
);
ALTER TABLE organizations ADD CONSTRAINT organization_has_its_own_command_name UNIQUE (command_name);
ALTER TABLE organizations ADD CONSTRAINT organization_slug_is_unique UNIQUE (slug);
ALTER TABLE organizations ADD CONSTRAINT organizations_pkey PRIMARY KEY (id);
GRANT INSERT, SELECT, UPDATE ON organizations TO purser_app;
CREATE TABLE packed_events (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  last_seq bigint NOT NULL,
  first_seq bigint NOT NULL,
  org_id uuid NOT NULL,
  events integer NOT NULL,
  first_tx uuid NOT NULL,
  last_tx uuid NOT NULL,
  seqs bigint[] NOT NULL,
  tx_ids uuid[] NOT NULL,
  event_ids uuid[] NOT NULL,
  key_ids uuid[] NOT NULL,
  price_numbers bigint[] NOT NULL,
  quantities bigint[] NOT NULL,
  created_ats bigint[] NOT NULL,
  amounts numeric[] NOT NULL,
  balances_after numeric[] NOT NULL,
  occurred_ats bigint[],
  period_starts bigint[],
  period_ends bigint[],
  deduplicated_froms uuid[],
  entity_ids text[] COLLATE "C",
  debts numeric[],
  quoteds numeric[],
  basis_points integer[],
  allowance_limits bigint[],
  allowance_useds bigint[],
  allowance_starts bigint[],
  allowance_ends bigint[],
  allowance_overages text[]
);
ALTER TABLE packed_events ADD CONSTRAINT packed_events_pkey PRIMARY KEY (app_id, wallet_id, last_seq);
CREATE INDEX packed_events_by_transaction ON public.packed_events USING btree (app_id, last_tx, first_tx);
ALTER TABLE packed_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE packed_events FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON packed_events FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT SELECT ON packed_events TO purser_app;
CREATE TABLE packed_ids (
  app_id uuid NOT NULL,
  run bigint NOT NULL,
  last_id uuid NOT NULL,
  org_id uuid NOT NULL,
  ids uuid[] NOT NULL,
  wallet_ids uuid[] NOT NULL,
  refs smallint[] NOT NULL,
  seqs bigint[] NOT NULL
);
ALTER TABLE packed_ids ADD CONSTRAINT packed_ids_pkey PRIMARY KEY (app_id, run, last_id);
ALTER TABLE packed_ids ENABLE ROW LEVEL SECURITY;
ALTER TABLE packed_ids FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON packed_ids FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT SELECT ON packed_ids TO purser_app;
CREATE TABLE packed_runs (
  app_id uuid NOT NULL,
  run bigint NOT NULL,
  org_id uuid NOT NULL,
  before bigint NOT NULL,
  scanned uuid NOT NULL,
  indexed boolean NOT NULL,
  done boolean NOT NULL,
  last_tx uuid NOT NULL,
  events bigint NOT NULL,
  started_at bigint NOT NULL,
  skipped bigint NOT NULL DEFAULT 0
);
ALTER TABLE packed_runs ADD CONSTRAINT packed_runs_pkey PRIMARY KEY (app_id, run);
ALTER TABLE packed_runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE packed_runs FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON packed_runs FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT SELECT ON packed_runs TO purser_app;
CREATE TABLE packing_results (
  application_id uuid NOT NULL,
  events bigint NOT NULL,
  skipped bigint NOT NULL,
  finished_at bigint NOT NULL
);
ALTER TABLE packing_results ADD CONSTRAINT packing_results_pkey PRIMARY KEY (application_id);
GRANT SELECT ON packing_results TO purser_app;
CREATE TABLE password_resets (
  id uuid NOT NULL,
  user_id uuid NOT NULL,
  hash bytea NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
ALTER TABLE password_resets ADD CONSTRAINT password_resets_pkey PRIMARY KEY (id);
ALTER TABLE password_resets ADD CONSTRAINT reset_hash_is_sha256 CHECK ((length(hash) = 32));
ALTER TABLE password_resets ADD CONSTRAINT reset_hash_is_unique UNIQUE (hash);
ALTER TABLE password_resets ADD CONSTRAINT reset_is_of_a_user FOREIGN KEY (user_id) REFERENCES users(id);
CREATE INDEX password_resets_by_expiry ON public.password_resets USING btree (expires_at);
CREATE INDEX password_resets_by_user ON public.password_resets USING btree (user_id);
GRANT DELETE, INSERT, SELECT, UPDATE ON password_resets TO purser_app;
CREATE TABLE passwords (
  user_id uuid NOT NULL,
  encoded text NOT NULL,
  changed_at bigint NOT NULL,
  temporary_until bigint
);
ALTER TABLE passwords ADD CONSTRAINT password_is_of_a_user FOREIGN KEY (user_id) REFERENCES users(id);
ALTER TABLE passwords ADD CONSTRAINT passwords_pkey PRIMARY KEY (user_id);
GRANT DELETE, INSERT, SELECT, UPDATE ON passwords TO purser_app;
CREATE TABLE payment_credits (
  app_id uuid NOT NULL,
  source_kind text NOT NULL,
  source_id text COLLATE "C" NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL,
  position integer NOT NULL,
  amount_nanocredits numeric(19,0) NOT NULL,
  taken_back_nanocredits numeric(19,0) NOT NULL DEFAULT 0
);
ALTER TABLE payment_credits ADD CONSTRAINT credits_came_with_a_payment FOREIGN KEY (app_id, source_kind, source_id) REFERENCES provider_payments(app_id, source_kind, source_id);
ALTER TABLE payment_credits ADD CONSTRAINT no_more_is_taken_back_than_came CHECK (((taken_back_nanocredits >= (0)::numeric) AND (taken_back_nanocredits <= amount_nanocredits)));
ALTER TABLE payment_credits ADD CONSTRAINT payment_credit_is_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits(app_id, id);
ALTER TABLE payment_credits ADD CONSTRAINT payment_credits_pkey PRIMARY KEY (app_id, source_kind, source_id, credit_id);
ALTER TABLE payment_credits ENABLE ROW LEVEL SECURITY;
ALTER TABLE payment_credits FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON payment_credits FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON payment_credits TO purser_app;
CREATE TABLE pending_seals (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  org_id uuid NOT NULL,
  first_before bytea NOT NULL,
  first_after bytea NOT NULL,
  progress bytea
);
ALTER TABLE pending_seals ADD CONSTRAINT first_seals_are_sha256 CHECK (((length(first_before) = 32) AND (length(first_after) = 32)));
ALTER TABLE pending_seals ADD CONSTRAINT pending_seals_pkey PRIMARY KEY (app_id, wallet_id);
ALTER TABLE pending_seals ADD CONSTRAINT reseal_progress_is_complete CHECK ((length(progress) = 104));
ALTER TABLE pending_seals ENABLE ROW LEVEL SECURITY;
ALTER TABLE pending_seals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON pending_seals FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON pending_seals TO purser_app;
CREATE TABLE periodic_tasks (
  name text COLLATE "C" NOT NULL,
  due_at bigint NOT NULL DEFAULT 0,
  lease_id uuid,
  leased_until bigint NOT NULL DEFAULT 0,
  tries integer NOT NULL DEFAULT 0,
  last_error text
);
ALTER TABLE periodic_tasks ADD CONSTRAINT periodic_tasks_pkey PRIMARY KEY (name);
GRANT INSERT, SELECT, UPDATE ON periodic_tasks TO purser_app;
CREATE TABLE plan_prices (
  app_id uuid NOT NULL,
  connection_id uuid NOT NULL,
  price_id text COLLATE "C" NOT NULL,
  org_id uuid NOT NULL,
  plan_id uuid NOT NULL,
  number bigint NOT NULL,
  terms jsonb NOT NULL,
  archive_after bigint,
  archived_at bigint,
  created_at bigint NOT NULL
);
ALTER TABLE plan_prices ADD CONSTRAINT plan_prices_pkey PRIMARY KEY (app_id, price_id);
ALTER TABLE plan_prices ADD CONSTRAINT price_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections(app_id, id);
ALTER TABLE plan_prices ADD CONSTRAINT price_is_of_a_plan FOREIGN KEY (app_id, plan_id) REFERENCES plans(app_id, id);
ALTER TABLE plan_prices ENABLE ROW LEVEL SECURITY;
ALTER TABLE plan_prices FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON plan_prices FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON plan_prices TO purser_app;
CREATE TABLE plans (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  key text COLLATE "C" NOT NULL,
  name text NOT NULL,
  amount_cents bigint NOT NULL,
  currency text NOT NULL,
  billing_interval text NOT NULL,
  terms jsonb NOT NULL,
  topups_enabled boolean NOT NULL,
  active boolean NOT NULL,
  revision bigint NOT NULL,
  sync_status text NOT NULL,
  sync_error text,
  sync_version bigint NOT NULL,
  price_number bigint NOT NULL,
  product_id text,
  price_id text,
  created_at bigint NOT NULL
);
ALTER TABLE plans ADD CONSTRAINT plan_amount_is_not_negative CHECK ((amount_cents >= 0));
ALTER TABLE plans ADD CONSTRAINT plan_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE plans ADD CONSTRAINT plan_interval_is_known CHECK ((billing_interval = ANY (ARRAY['month'::text, 'year'::text])));
ALTER TABLE plans ADD CONSTRAINT plan_key_is_unique_in_its_application UNIQUE (app_id, key);
ALTER TABLE plans ADD CONSTRAINT plan_revision_is_positive CHECK ((revision > 0));
ALTER TABLE plans ADD CONSTRAINT plans_pkey PRIMARY KEY (app_id, id);
ALTER TABLE plans ADD CONSTRAINT sync_status_is_known CHECK ((sync_status = ANY (ARRAY['pending'::text, 'synced'::text, 'error'::text])));
ALTER TABLE plans ENABLE ROW LEVEL SECURITY;
ALTER TABLE plans FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON plans FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON plans TO purser_app;
CREATE TABLE prices (
  app_id uuid NOT NULL,
  number bigint NOT NULL,
  org_id uuid NOT NULL,
  feature_id uuid NOT NULL,
  revision bigint NOT NULL,
  credit_id uuid NOT NULL,
  cost_nanocredits numeric(19,0) NOT NULL,
  quantity_per_unit bigint NOT NULL,
  pricing_mode text NOT NULL,
  created_at bigint NOT NULL
);
ALTER TABLE prices ADD CONSTRAINT price_is_in_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits(app_id, id);
ALTER TABLE prices ADD CONSTRAINT price_is_of_a_feature FOREIGN KEY (app_id, feature_id) REFERENCES features(app_id, id);
ALTER TABLE prices ADD CONSTRAINT prices_pkey PRIMARY KEY (app_id, number);
ALTER TABLE prices ENABLE ROW LEVEL SECURITY;
ALTER TABLE prices FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON prices FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON prices TO purser_app;
CREATE TABLE provider_connections (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  mode text NOT NULL,
  live boolean NOT NULL,
  account_id text NOT NULL,
  api_key bytea,
  api_key_last_four text,
  endpoint_id text,
  webhook_secrets bytea[] NOT NULL,
  webhook_secrets_until bigint[] NOT NULL,
  portal_configuration text,
  events_after bigint NOT NULL,
  created_at bigint NOT NULL,
  changed_at bigint NOT NULL,
  replaced_at bigint
);
ALTER TABLE provider_connections ADD CONSTRAINT connection_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE provider_connections ADD CONSTRAINT connection_mode_is_known CHECK ((mode = ANY (ARRAY['stripe'::text, 'sandbox'::text])));
ALTER TABLE provider_connections ADD CONSTRAINT every_secret_has_an_end CHECK ((cardinality(webhook_secrets) = cardinality(webhook_secrets_until)));
ALTER TABLE provider_connections ADD CONSTRAINT provider_connections_pkey PRIMARY KEY (app_id, id);
ALTER TABLE provider_connections ADD CONSTRAINT sandbox_is_never_live CHECK (((mode <> 'sandbox'::text) OR (NOT live)));
CREATE UNIQUE INDEX application_has_one_connection ON public.provider_connections USING btree (app_id) WHERE (replaced_at IS NULL);
ALTER TABLE provider_connections ENABLE ROW LEVEL SECURITY;
ALTER TABLE provider_connections FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON provider_connections FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON provider_connections TO purser_app;
CREATE TABLE provider_customers (
  app_id uuid NOT NULL,
  connection_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  org_id uuid NOT NULL,
  provider_id text COLLATE "C" NOT NULL,
  created_at bigint NOT NULL
);
ALTER TABLE provider_customers ADD CONSTRAINT customer_has_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE provider_customers ADD CONSTRAINT customer_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections(app_id, id);
ALTER TABLE provider_customers ADD CONSTRAINT customer_is_one_wallet UNIQUE (app_id, connection_id, provider_id);
ALTER TABLE provider_customers ADD CONSTRAINT provider_customers_pkey PRIMARY KEY (app_id, connection_id, wallet_id);
ALTER TABLE provider_customers ENABLE ROW LEVEL SECURITY;
ALTER TABLE provider_customers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON provider_customers FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT ON provider_customers TO purser_app;
CREATE TABLE provider_ops (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  kind text NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  fingerprint bytea NOT NULL,
  parameters jsonb NOT NULL,
  step text NOT NULL,
  attempt integer NOT NULL,
  state text NOT NULL,
  created_at bigint NOT NULL,
  attempted_at bigint,
  wallet_id uuid,
  change_id uuid,
  answer jsonb,
  result jsonb,
  error text,
  connection_id uuid,
  fence bigint
);
ALTER TABLE provider_ops ADD CONSTRAINT attempts_count_from_one CHECK ((attempt > 0));
ALTER TABLE provider_ops ADD CONSTRAINT fingerprint_is_sha256 CHECK ((length(fingerprint) = 32));
ALTER TABLE provider_ops ADD CONSTRAINT intent_is_kept_once UNIQUE (app_id, kind, idempotency_key);
ALTER TABLE provider_ops ADD CONSTRAINT op_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE provider_ops ADD CONSTRAINT op_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections(app_id, id);
ALTER TABLE provider_ops ADD CONSTRAINT op_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE provider_ops ADD CONSTRAINT op_state_is_known CHECK ((state = ANY (ARRAY['running'::text, 'done'::text, 'failed'::text])));
ALTER TABLE provider_ops ADD CONSTRAINT provider_ops_pkey PRIMARY KEY (app_id, id);
CREATE INDEX ops_by_wallet ON public.provider_ops USING btree (app_id, wallet_id);
CREATE INDEX ops_running ON public.provider_ops USING btree (app_id) WHERE (state = 'running'::text);
ALTER TABLE provider_ops ENABLE ROW LEVEL SECURITY;
ALTER TABLE provider_ops FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON provider_ops FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON provider_ops TO purser_app;
CREATE TABLE provider_payments (
  app_id uuid NOT NULL,
  source_kind text NOT NULL,
  source_id text COLLATE "C" NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  subscription_id uuid,
  amount_cents bigint NOT NULL,
  currency text NOT NULL,
  intent_id text COLLATE "C",
  charge_id text COLLATE "C",
  plan_id uuid,
  period_start bigint,
  period_end bigint,
  free boolean NOT NULL,
  refunded_cents bigint NOT NULL DEFAULT 0,
  disputed_cents bigint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL,
  lost_cents bigint NOT NULL DEFAULT 0,
  balance_cents bigint NOT NULL DEFAULT 0
);
ALTER TABLE provider_payments ADD CONSTRAINT payment_is_of_a_subscription FOREIGN KEY (app_id, subscription_id) REFERENCES subscriptions(app_id, id);
ALTER TABLE provider_payments ADD CONSTRAINT payment_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE provider_payments ADD CONSTRAINT payment_is_taken_once PRIMARY KEY (app_id, source_kind, source_id);
ALTER TABLE provider_payments ADD CONSTRAINT source_kind_is_known CHECK ((source_kind = ANY (ARRAY['invoice'::text, 'session'::text, 'free_period'::text])));
CREATE INDEX payments_by_charge ON public.provider_payments USING btree (app_id, charge_id) WHERE (charge_id IS NOT NULL);
CREATE INDEX payments_by_intent ON public.provider_payments USING btree (app_id, intent_id) WHERE (intent_id IS NOT NULL);
CREATE INDEX payments_by_time ON public.provider_payments USING btree (app_id, created_at);
CREATE INDEX payments_by_wallet ON public.provider_payments USING btree (app_id, wallet_id);
CREATE INDEX payments_returned ON public.provider_payments USING btree (app_id, created_at) WHERE ((refunded_cents + disputed_cents) > 0);
ALTER TABLE provider_payments ENABLE ROW LEVEL SECURITY;
ALTER TABLE provider_payments FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON provider_payments FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON provider_payments TO purser_app;
CREATE TABLE readiness_probes (
  slot smallint NOT NULL,
  written_at bigint NOT NULL
);
ALTER TABLE readiness_probes ADD CONSTRAINT readiness_probe_has_one_of_sixteen_slots CHECK (((slot >= 0) AND (slot <= 15)));
ALTER TABLE readiness_probes ADD CONSTRAINT readiness_probes_pkey PRIMARY KEY (slot);
GRANT INSERT, SELECT, UPDATE ON readiness_probes TO purser_app;
CREATE TABLE recent_requests (
  app_id uuid NOT NULL,
  slot integer NOT NULL,
  org_id uuid NOT NULL,
  id uuid NOT NULL,
  at bigint NOT NULL,
  method text NOT NULL,
  route text NOT NULL,
  status integer NOT NULL,
  error text,
  took_us bigint NOT NULL,
  key_id uuid NOT NULL,
  identity text,
  feature text,
  message text
);
ALTER TABLE recent_requests ADD CONSTRAINT recent_requests_pkey PRIMARY KEY (app_id, slot);
ALTER TABLE recent_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE recent_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON recent_requests FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON recent_requests TO purser_app;
CREATE TABLE recovery_codes (
  user_id uuid NOT NULL,
  hash bytea NOT NULL
);
ALTER TABLE recovery_codes ADD CONSTRAINT code_hash_is_sha256 CHECK ((length(hash) = 32));
ALTER TABLE recovery_codes ADD CONSTRAINT code_is_of_a_user FOREIGN KEY (user_id) REFERENCES users(id);
ALTER TABLE recovery_codes ADD CONSTRAINT recovery_codes_pkey PRIMARY KEY (user_id, hash);
GRANT DELETE, INSERT, SELECT ON recovery_codes TO purser_app;
CREATE TABLE request_failures (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  at bigint NOT NULL,
  method text NOT NULL,
  route text NOT NULL,
  status integer NOT NULL,
  error text,
  took_us bigint NOT NULL,
  key_id uuid NOT NULL,
  identity text NOT NULL,
  feature text NOT NULL,
  message text
);
ALTER TABLE request_failures ADD CONSTRAINT request_failures_pkey PRIMARY KEY (app_id, id);
CREATE INDEX request_failures_by_identity ON public.request_failures USING btree (app_id, identity, id);
ALTER TABLE request_failures ENABLE ROW LEVEL SECURITY;
ALTER TABLE request_failures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON request_failures FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON request_failures TO purser_app;
CREATE TABLE request_rings (
  app_id uuid NOT NULL,
  org_id uuid NOT NULL,
  written bigint NOT NULL
);
ALTER TABLE request_rings ADD CONSTRAINT request_rings_pkey PRIMARY KEY (app_id);
ALTER TABLE request_rings ENABLE ROW LEVEL SECURITY;
ALTER TABLE request_rings FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON request_rings FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON request_rings TO purser_app;
CREATE TABLE revenue_days (
  app_id uuid NOT NULL,
  day bigint NOT NULL,
  currency text COLLATE "C" NOT NULL,
  topup boolean NOT NULL,
  org_id uuid NOT NULL,
  amount_cents bigint NOT NULL
);
ALTER TABLE revenue_days ADD CONSTRAINT revenue_days_pkey PRIMARY KEY (app_id, day, currency, topup);
ALTER TABLE revenue_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE revenue_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON revenue_days FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON revenue_days TO purser_app;
CREATE TABLE reversals (
  app_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  tx_id uuid NOT NULL,
  event_id bytea NOT NULL,
  amount_nanocredits nanocredits NOT NULL,
  requested_nanocredits nanocredits,
  whole boolean NOT NULL,
  reason text NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  user_id uuid,
  created_at bigint NOT NULL
);
ALTER TABLE reversals ADD CONSTRAINT reversal_has_a_reason CHECK ((reason <> ''::text));
ALTER TABLE reversals ADD CONSTRAINT reversal_is_an_entry FOREIGN KEY (app_id, entry_id) REFERENCES journal(app_id, id);
ALTER TABLE reversals ADD CONSTRAINT reversal_is_made_once UNIQUE (app_id, idempotency_key);
ALTER TABLE reversals ADD CONSTRAINT reversals_pkey PRIMARY KEY (app_id, entry_id);
CREATE INDEX reversals_by_event ON public.reversals USING btree (app_id, wallet_id, tx_id);
ALTER TABLE reversals ENABLE ROW LEVEL SECURITY;
ALTER TABLE reversals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON reversals FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON reversals TO purser_app;
CREATE TABLE sandbox_objects (
  app_id uuid NOT NULL,
  key text NOT NULL,
  org_id uuid NOT NULL,
  kind text NOT NULL,
  nth bigint NOT NULL,
  customer text,
  parent text,
  alias text,
  live_of text,
  due bigint,
  refs text[] NOT NULL,
  document bytea NOT NULL
);
ALTER TABLE sandbox_objects ADD CONSTRAINT sandbox_objects_pkey PRIMARY KEY (app_id, key);
CREATE INDEX sandbox_objects_by_alias ON public.sandbox_objects USING btree (app_id, kind, alias) WHERE (alias IS NOT NULL);
CREATE INDEX sandbox_objects_due ON public.sandbox_objects USING btree (app_id, kind, due, nth) WHERE (due IS NOT NULL);
CREATE INDEX sandbox_objects_in_order ON public.sandbox_objects USING btree (app_id, kind, nth);
CREATE INDEX sandbox_objects_live ON public.sandbox_objects USING btree (app_id, kind, live_of) WHERE (live_of IS NOT NULL);
CREATE INDEX sandbox_objects_of_customers ON public.sandbox_objects USING btree (app_id, kind, customer, nth) WHERE (customer IS NOT NULL);
CREATE INDEX sandbox_objects_of_parents ON public.sandbox_objects USING btree (app_id, kind, parent, nth) WHERE (parent IS NOT NULL);
ALTER TABLE sandbox_objects ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandbox_objects FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sandbox_objects FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON sandbox_objects TO purser_app;
CREATE TABLE sandbox_worlds (
  app_id uuid NOT NULL,
  org_id uuid NOT NULL,
  state bytea,
  head bytea
);
ALTER TABLE sandbox_worlds ADD CONSTRAINT sandbox_worlds_pkey PRIMARY KEY (app_id);
ALTER TABLE sandbox_worlds ADD CONSTRAINT world_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE sandbox_worlds ENABLE ROW LEVEL SECURITY;
ALTER TABLE sandbox_worlds FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sandbox_worlds FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON sandbox_worlds TO purser_app;
CREATE TABLE schema_migrations (
  id bigint NOT NULL DEFAULT nextval('schema_migrations_id_seq'::regclass),
  name character varying,
  group_id bigint,
  migrated_at timestamp with time zone NOT NULL DEFAULT CURRENT_TIMESTAMP
);
ALTER TABLE schema_migrations ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX schema_migrations_name_unique ON public.schema_migrations USING btree (name);
GRANT SELECT ON schema_migrations TO purser_app;
CREATE TABLE schema_migrations_locks (
  id bigint NOT NULL DEFAULT nextval('schema_migrations_locks_id_seq'::regclass),
  table_name character varying
);
ALTER TABLE schema_migrations_locks ADD CONSTRAINT schema_migrations_locks_pkey PRIMARY KEY (id);
ALTER TABLE schema_migrations_locks ADD CONSTRAINT schema_migrations_locks_table_name_key UNIQUE (table_name);
CREATE TABLE sealed_counters (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  feature_id uuid NOT NULL,
  period_start bigint NOT NULL,
  period_end bigint NOT NULL,
  org_id uuid NOT NULL,
  used bigint NOT NULL
);
ALTER TABLE sealed_counters ADD CONSTRAINT sealed_counters_pkey PRIMARY KEY (app_id, wallet_id, feature_id, period_start, period_end);
ALTER TABLE sealed_counters ENABLE ROW LEVEL SECURITY;
ALTER TABLE sealed_counters FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sealed_counters FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON sealed_counters TO purser_app;
CREATE TABLE sealed_wallets (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  org_id uuid NOT NULL,
  sealed_at bigint NOT NULL
);
ALTER TABLE sealed_wallets ADD CONSTRAINT sealed_wallets_pkey PRIMARY KEY (app_id, wallet_id);
ALTER TABLE sealed_wallets ENABLE ROW LEVEL SECURITY;
ALTER TABLE sealed_wallets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON sealed_wallets FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON sealed_wallets TO purser_app;
CREATE TABLE second_factors (
  user_id uuid NOT NULL,
  sealed_seed bytea NOT NULL,
  created_at bigint NOT NULL,
  last_step bigint NOT NULL
);
ALTER TABLE second_factors ADD CONSTRAINT factor_is_of_a_user FOREIGN KEY (user_id) REFERENCES users(id);
ALTER TABLE second_factors ADD CONSTRAINT second_factors_pkey PRIMARY KEY (user_id);
GRANT DELETE, INSERT, SELECT, UPDATE ON second_factors TO purser_app;
CREATE TABLE secret_keys (
  check_value bytea NOT NULL,
  created_at bigint NOT NULL
);
ALTER TABLE secret_keys ADD CONSTRAINT check_value_is_32_bytes CHECK ((length(check_value) = 32));
ALTER TABLE secret_keys ADD CONSTRAINT secret_keys_pkey PRIMARY KEY (check_value);
GRANT DELETE, INSERT, SELECT ON secret_keys TO purser_app;
CREATE TABLE sessions (
  hash bytea NOT NULL,
  id uuid NOT NULL,
  user_id uuid,
  content bytea NOT NULL,
  created_at bigint NOT NULL,
  seen_at bigint NOT NULL,
  expires_at bigint NOT NULL,
  address text NOT NULL,
  agent text NOT NULL
);
ALTER TABLE sessions ADD CONSTRAINT session_hash_is_sha256 CHECK ((length(hash) = 32));
ALTER TABLE sessions ADD CONSTRAINT session_id_is_unique UNIQUE (id);
ALTER TABLE sessions ADD CONSTRAINT session_is_of_a_user FOREIGN KEY (user_id) REFERENCES users(id);
ALTER TABLE sessions ADD CONSTRAINT sessions_pkey PRIMARY KEY (hash);
CREATE INDEX sessions_by_expiry ON public.sessions USING btree (expires_at);
CREATE INDEX sessions_by_user ON public.sessions USING btree (user_id);
GRANT DELETE, INSERT, SELECT, UPDATE ON sessions TO purser_app;
CREATE TABLE setup_links (
  hash bytea NOT NULL,
  created_at bigint NOT NULL
);
ALTER TABLE setup_links ADD CONSTRAINT setup_hash_is_sha256 CHECK ((length(hash) = 32));
ALTER TABLE setup_links ADD CONSTRAINT setup_links_pkey PRIMARY KEY (hash);
GRANT DELETE, INSERT, SELECT ON setup_links TO purser_app;
CREATE TABLE subscription_changes (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  kind text NOT NULL,
  subscription_id uuid,
  replaces uuid,
  terms jsonb NOT NULL,
  state text NOT NULL,
  requested_at bigint NOT NULL,
  session_id text COLLATE "C",
  invoice_id text COLLATE "C",
  payment_url text,
  expires_at bigint
);
ALTER TABLE subscription_changes ADD CONSTRAINT change_is_of_a_subscription FOREIGN KEY (app_id, subscription_id) REFERENCES subscriptions(app_id, id);
ALTER TABLE subscription_changes ADD CONSTRAINT change_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE subscription_changes ADD CONSTRAINT change_kind_is_known CHECK ((kind = ANY (ARRAY['checkout'::text, 'upgrade'::text, 'downgrade'::text])));
ALTER TABLE subscription_changes ADD CONSTRAINT change_replaces_a_subscription FOREIGN KEY (app_id, replaces) REFERENCES subscriptions(app_id, id);
ALTER TABLE subscription_changes ADD CONSTRAINT change_state_is_known CHECK ((state = ANY (ARRAY['requested'::text, 'pending'::text, 'applied'::text, 'dropped'::text])));
ALTER TABLE subscription_changes ADD CONSTRAINT session_sells_one_change UNIQUE (app_id, session_id);
ALTER TABLE subscription_changes ADD CONSTRAINT subscription_changes_pkey PRIMARY KEY (app_id, id);
CREATE INDEX changes_by_wallet ON public.subscription_changes USING btree (app_id, wallet_id, id);
CREATE INDEX changes_open ON public.subscription_changes USING btree (app_id) WHERE (state = ANY (ARRAY['requested'::text, 'pending'::text]));
CREATE UNIQUE INDEX one_change_of_a_kind_waits ON public.subscription_changes USING btree (app_id, subscription_id, kind) WHERE ((state = 'pending'::text) AND (kind = ANY (ARRAY['upgrade'::text, 'downgrade'::text])));
ALTER TABLE subscription_changes ENABLE ROW LEVEL SECURITY;
ALTER TABLE subscription_changes FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON subscription_changes FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON subscription_changes TO purser_app;
CREATE TABLE subscriptions (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  status text NOT NULL,
  period_start bigint NOT NULL,
  period_end bigint NOT NULL,
  terms jsonb NOT NULL,
  connection_id uuid,
  provider_id text COLLATE "C",
  begun boolean NOT NULL DEFAULT true,
  extra boolean NOT NULL DEFAULT false,
  anchor bigint NOT NULL DEFAULT 0,
  plan_id uuid,
  sale jsonb,
  cancel_at_period_end boolean NOT NULL DEFAULT false,
  scheduled jsonb,
  pending jsonb,
  created_at bigint NOT NULL DEFAULT 0,
  ended_at bigint
);
ALTER TABLE subscriptions ADD CONSTRAINT period_is_not_empty CHECK (((period_start < period_end) OR ((NOT begun) AND (period_start = period_end))));
ALTER TABLE subscriptions ADD CONSTRAINT provider_knows_it_by_a_connection CHECK (((provider_id IS NULL) OR (connection_id IS NOT NULL)));
ALTER TABLE subscriptions ADD CONSTRAINT status_is_known CHECK ((status = ANY (ARRAY['active'::text, 'trialing'::text, 'past_due'::text, 'unpaid'::text, 'paused'::text, 'incomplete'::text, 'canceled'::text])));
ALTER TABLE subscriptions ADD CONSTRAINT subscription_belongs_to_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE subscriptions ADD CONSTRAINT subscription_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections(app_id, id);
ALTER TABLE subscriptions ADD CONSTRAINT subscriptions_pkey PRIMARY KEY (app_id, id);
CREATE UNIQUE INDEX subscription_is_kept_once ON public.subscriptions USING btree (app_id, provider_id);
CREATE INDEX subscriptions_by_plan ON public.subscriptions USING btree (app_id, plan_id, wallet_id) WHERE (plan_id IS NOT NULL);
CREATE INDEX subscriptions_by_status ON public.subscriptions USING btree (app_id, status, id) WHERE (id IS NOT NULL);
CREATE INDEX subscriptions_not_live ON public.subscriptions USING btree (app_id, wallet_id, id) WHERE (status = ANY (ARRAY['incomplete'::text, 'canceled'::text]));
CREATE INDEX subscriptions_of_a_plan ON public.subscriptions USING btree (app_id, plan_id, status, id) WHERE (plan_id IS NOT NULL);
CREATE INDEX subscriptions_on_hold ON public.subscriptions USING btree (app_id, wallet_id) WHERE (status = ANY (ARRAY['past_due'::text, 'unpaid'::text]));
CREATE UNIQUE INDEX wallet_has_one_live_subscription ON public.subscriptions USING btree (app_id, wallet_id) WHERE (status = ANY (ARRAY['active'::text, 'trialing'::text, 'past_due'::text, 'unpaid'::text, 'paused'::text]));
ALTER TABLE subscriptions ENABLE ROW LEVEL SECURITY;
ALTER TABLE subscriptions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON subscriptions FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON subscriptions TO purser_app;
CREATE TABLE topups (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  amount_nanocredits numeric(19,0) NOT NULL,
  amount_cents bigint NOT NULL,
  currency text NOT NULL,
  connection_id uuid NOT NULL,
  customer_id text NOT NULL,
  live boolean NOT NULL,
  session_id text COLLATE "C",
  url text,
  expires_at bigint NOT NULL,
  status text NOT NULL,
  created_at bigint NOT NULL
);
ALTER TABLE topups ADD CONSTRAINT session_sells_one_topup UNIQUE (app_id, session_id);
ALTER TABLE topups ADD CONSTRAINT topup_amount_is_positive CHECK ((amount_nanocredits > (0)::numeric));
ALTER TABLE topups ADD CONSTRAINT topup_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections(app_id, id);
ALTER TABLE topups ADD CONSTRAINT topup_is_of_a_credit FOREIGN KEY (app_id, credit_id) REFERENCES credits(app_id, id);
ALTER TABLE topups ADD CONSTRAINT topup_is_of_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE topups ADD CONSTRAINT topup_status_is_known CHECK ((status = ANY (ARRAY['open'::text, 'processing'::text, 'paid'::text, 'failed'::text, 'expired'::text, 'set_aside'::text])));
ALTER TABLE topups ADD CONSTRAINT topups_pkey PRIMARY KEY (app_id, id);
CREATE INDEX topups_by_wallet ON public.topups USING btree (app_id, wallet_id, id);
CREATE INDEX topups_open ON public.topups USING btree (app_id) WHERE (status = ANY (ARRAY['open'::text, 'processing'::text]));
ALTER TABLE topups ENABLE ROW LEVEL SECURITY;
ALTER TABLE topups FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON topups FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON topups TO purser_app;
CREATE TABLE transfers (
  app_id uuid NOT NULL,
  entry_id uuid NOT NULL,
  org_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  to_entry_id uuid NOT NULL,
  to_wallet_id uuid NOT NULL,
  amount_nanocredits nanocredits NOT NULL,
  reason text NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  user_id uuid,
  created_at bigint NOT NULL
);
ALTER TABLE transfers ADD CONSTRAINT transfer_arrives FOREIGN KEY (app_id, to_entry_id) REFERENCES journal(app_id, id);
ALTER TABLE transfers ADD CONSTRAINT transfer_arrives_once UNIQUE (app_id, to_entry_id);
ALTER TABLE transfers ADD CONSTRAINT transfer_has_a_reason CHECK ((reason <> ''::text));
ALTER TABLE transfers ADD CONSTRAINT transfer_has_two_wallets CHECK ((wallet_id <> to_wallet_id));
ALTER TABLE transfers ADD CONSTRAINT transfer_is_an_entry FOREIGN KEY (app_id, entry_id) REFERENCES journal(app_id, id);
ALTER TABLE transfers ADD CONSTRAINT transfer_is_made_once UNIQUE (app_id, idempotency_key);
ALTER TABLE transfers ADD CONSTRAINT transfer_moves_something CHECK (((amount_nanocredits)::numeric > (0)::numeric));
ALTER TABLE transfers ADD CONSTRAINT transfers_pkey PRIMARY KEY (app_id, entry_id);
ALTER TABLE transfers ENABLE ROW LEVEL SECURITY;
ALTER TABLE transfers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON transfers FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON transfers TO purser_app;
CREATE TABLE usage_days (
  app_id uuid NOT NULL,
  day bigint NOT NULL,
  feature_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL,
  accepted bigint NOT NULL,
  deduplicated bigint NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL
);
ALTER TABLE usage_days ADD CONSTRAINT usage_days_pkey PRIMARY KEY (app_id, day, feature_id, credit_id);
ALTER TABLE usage_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_days FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON usage_days TO purser_app;
CREATE TABLE usage_dimensions (
  app_id uuid NOT NULL,
  name text COLLATE "C" NOT NULL,
  day bigint NOT NULL,
  feature_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  value text COLLATE "C" NOT NULL,
  org_id uuid NOT NULL,
  events bigint NOT NULL,
  deduplicated bigint NOT NULL,
  quantity numeric(38,0) NOT NULL,
  included numeric(38,0) NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL
);
ALTER TABLE usage_dimensions ADD CONSTRAINT usage_dimensions_pkey PRIMARY KEY (app_id, name, day, feature_id, credit_id, value);
ALTER TABLE usage_dimensions ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_dimensions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_dimensions FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON usage_dimensions TO purser_app;
CREATE TABLE usage_events (
  app_id uuid NOT NULL,
  org_id uuid,
  tx_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  key_id uuid NOT NULL,
  seq bigint NOT NULL,
  price_number bigint NOT NULL,
  quantity bigint NOT NULL,
  created_at bigint NOT NULL,
  occurred_at bigint,
  period_start bigint,
  period_end bigint,
  allowance_limit bigint,
  allowance_used bigint,
  allowance_start bigint,
  allowance_end bigint,
  basis_points integer,
  amount_nanocredits nanocredits NOT NULL,
  balance_after nanocredits NOT NULL,
  debt_after nanocredits,
  quoted_nanocredits nanocredits,
  deduplicated_from uuid,
  allowance_overage text,
  event_id bytea NOT NULL,
  entity_id text COLLATE "C"
);
ALTER TABLE usage_events ADD CONSTRAINT event_has_its_place_in_the_wallet UNIQUE (app_id, wallet_id, seq);
ALTER TABLE usage_events ADD CONSTRAINT event_id_is_unique_in_its_application PRIMARY KEY (app_id, event_id);
CREATE INDEX usage_events_by_transaction ON public.usage_events USING brin (tx_id) WITH (pages_per_range='128', autosummarize='on');
ALTER TABLE usage_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_events FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_events FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON usage_events TO purser_app;
CREATE TABLE usage_hours (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  hour bigint NOT NULL,
  feature_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL,
  events bigint NOT NULL,
  deduplicated bigint NOT NULL,
  quantity numeric(38,0) NOT NULL,
  included numeric(38,0) NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL
);
ALTER TABLE usage_hours ADD CONSTRAINT usage_hours_pkey PRIMARY KEY (app_id, wallet_id, hour, feature_id, credit_id);
CREATE INDEX usage_hours_by_hour ON public.usage_hours USING brin (hour) WITH (pages_per_range='32', autosummarize='on');
ALTER TABLE usage_hours ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_hours FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_hours FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON usage_hours TO purser_app;
CREATE TABLE usage_months (
  app_id uuid NOT NULL,
  month bigint NOT NULL,
  wallet_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL,
  events bigint NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL
);
ALTER TABLE usage_months ADD CONSTRAINT month_belongs_to_a_wallet FOREIGN KEY (app_id, wallet_id) REFERENCES wallets(app_id, id);
ALTER TABLE usage_months ADD CONSTRAINT usage_months_pkey PRIMARY KEY (app_id, month, wallet_id, credit_id);
CREATE INDEX usage_months_by_charge ON public.usage_months USING btree (app_id, month, credit_id, charged_nanocredits, wallet_id);
ALTER TABLE usage_months ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_months FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_months FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON usage_months TO purser_app;
CREATE TABLE usage_progress (
  app_id uuid NOT NULL,
  org_id uuid NOT NULL,
  added bigint NOT NULL DEFAULT 0,
  until bigint NOT NULL DEFAULT 0,
  proposed bigint NOT NULL DEFAULT 0,
  proposed_until bigint NOT NULL DEFAULT 0,
  proposed_xid bigint NOT NULL DEFAULT 0,
  proposed_at bigint NOT NULL DEFAULT 0,
  clock_offset bigint NOT NULL DEFAULT 0,
  verified_until bigint NOT NULL DEFAULT 0,
  days_until bigint NOT NULL DEFAULT 0,
  values_until bigint NOT NULL DEFAULT 0,
  revenue_until bigint NOT NULL DEFAULT 0,
  days_verified_until bigint NOT NULL DEFAULT 0
);
ALTER TABLE usage_progress ADD CONSTRAINT progress_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE usage_progress ADD CONSTRAINT usage_progress_pkey PRIMARY KEY (app_id);
ALTER TABLE usage_progress ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_progress FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_progress FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON usage_progress TO purser_app;
CREATE TABLE usage_total_days (
  app_id uuid NOT NULL,
  day bigint NOT NULL,
  feature_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  key_id uuid NOT NULL,
  org_id uuid NOT NULL,
  events bigint NOT NULL,
  deduplicated bigint NOT NULL,
  quantity numeric(38,0) NOT NULL,
  included numeric(38,0) NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL
);
ALTER TABLE usage_total_days ADD CONSTRAINT usage_total_days_pkey PRIMARY KEY (app_id, day, feature_id, credit_id, key_id);
ALTER TABLE usage_total_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_total_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_total_days FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON usage_total_days TO purser_app;
CREATE TABLE usage_totals (
  app_id uuid NOT NULL,
  hour bigint NOT NULL,
  feature_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  key_id uuid NOT NULL,
  org_id uuid NOT NULL,
  events bigint NOT NULL,
  deduplicated bigint NOT NULL,
  quantity numeric(38,0) NOT NULL,
  included numeric(38,0) NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL
);
ALTER TABLE usage_totals ADD CONSTRAINT usage_totals_pkey PRIMARY KEY (app_id, hour, feature_id, credit_id, key_id);
ALTER TABLE usage_totals ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_totals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_totals FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON usage_totals TO purser_app;
CREATE TABLE usage_value_days (
  app_id uuid NOT NULL,
  name text COLLATE "C" NOT NULL,
  day bigint NOT NULL,
  feature_id uuid NOT NULL,
  credit_id uuid NOT NULL,
  org_id uuid NOT NULL,
  events bigint NOT NULL,
  deduplicated bigint NOT NULL,
  quantity numeric(38,0) NOT NULL,
  included numeric(38,0) NOT NULL,
  charged_nanocredits numeric(38,0) NOT NULL,
  packed bytea NOT NULL
);
ALTER TABLE usage_value_days ADD CONSTRAINT usage_value_days_pkey PRIMARY KEY (app_id, name, day, feature_id, credit_id);
ALTER TABLE usage_value_days ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_value_days FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_value_days FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON usage_value_days TO purser_app;
CREATE TABLE usage_values (
  app_id uuid NOT NULL,
  day bigint NOT NULL,
  name text COLLATE "C" NOT NULL,
  value text COLLATE "C" NOT NULL,
  org_id uuid NOT NULL
);
ALTER TABLE usage_values ADD CONSTRAINT usage_values_pkey PRIMARY KEY (app_id, day, name, value);
ALTER TABLE usage_values ENABLE ROW LEVEL SECURITY;
ALTER TABLE usage_values FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON usage_values FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT ON usage_values TO purser_app;
CREATE TABLE users (
  id uuid NOT NULL,
  email text COLLATE "C" NOT NULL,
  name text NOT NULL,
  created_at bigint NOT NULL
);
ALTER TABLE users ADD CONSTRAINT email_is_unique UNIQUE (email);
ALTER TABLE users ADD CONSTRAINT users_pkey PRIMARY KEY (id);
GRANT INSERT, SELECT, UPDATE ON users TO purser_app;
CREATE TABLE verification_claims (
  subject_id uuid NOT NULL,
  kind text NOT NULL,
  claimed_at bigint NOT NULL,
  claimed_until bigint NOT NULL
);
ALTER TABLE verification_claims ADD CONSTRAINT claimed_kind_is_known CHECK ((kind = ANY (ARRAY['new'::text, 'all'::text, 'installation'::text])));
ALTER TABLE verification_claims ADD CONSTRAINT verification_claims_pkey PRIMARY KEY (subject_id, kind);
GRANT INSERT, SELECT, UPDATE ON verification_claims TO purser_app;
CREATE TABLE verifications (
  app_id uuid NOT NULL,
  kind text NOT NULL,
  org_id uuid NOT NULL,
  claimed_until bigint NOT NULL,
  claimed_at bigint NOT NULL,
  started_at bigint,
  finished_at bigint,
  wallet_count bigint NOT NULL DEFAULT 0,
  entry_count bigint NOT NULL DEFAULT 0,
  differences bigint NOT NULL DEFAULT 0,
  failure text NOT NULL DEFAULT ''::text,
  lines text[] NOT NULL DEFAULT '{}'::text[]
);
ALTER TABLE verifications ADD CONSTRAINT verification_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE verifications ADD CONSTRAINT verification_kind_is_known CHECK ((kind = ANY (ARRAY['new'::text, 'all'::text])));
ALTER TABLE verifications ADD CONSTRAINT verifications_pkey PRIMARY KEY (app_id, kind);
ALTER TABLE verifications ENABLE ROW LEVEL SECURITY;
ALTER TABLE verifications FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON verifications FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON verifications TO purser_app;
CREATE TABLE wallet_seals (
  app_id uuid NOT NULL,
  wallet_id uuid NOT NULL,
  org_id uuid NOT NULL,
  seq bigint NOT NULL,
  seal bytea NOT NULL,
  sealed_at bigint NOT NULL,
  billed bigint NOT NULL,
  credit_ids uuid[] NOT NULL,
  amounts numeric(19,0)[] NOT NULL,
  debts numeric(19,0)[] NOT NULL
);
ALTER TABLE wallet_seals ADD CONSTRAINT every_sealed_credit_has_a_balance CHECK (((cardinality(credit_ids) = cardinality(amounts)) AND (cardinality(credit_ids) = cardinality(debts))));
ALTER TABLE wallet_seals ADD CONSTRAINT seal_is_sha256 CHECK ((length(seal) = 32));
ALTER TABLE wallet_seals ADD CONSTRAINT sealed_entries_are_counted CHECK ((seq > 0));
ALTER TABLE wallet_seals ADD CONSTRAINT wallet_seals_pkey PRIMARY KEY (app_id, wallet_id);
ALTER TABLE wallet_seals ENABLE ROW LEVEL SECURITY;
ALTER TABLE wallet_seals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON wallet_seals FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON wallet_seals TO purser_app;
CREATE TABLE wallets (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  identity text COLLATE "C" NOT NULL,
  billing_interval billing_interval,
  billing_anchor bigint,
  charged boolean NOT NULL DEFAULT false,
  version wallet_version NOT NULL DEFAULT 0,
  last_seq bigint NOT NULL DEFAULT 0,
  created_at bigint NOT NULL
) WITH (fillfactor=80, autovacuum_analyze_scale_factor=1);
ALTER TABLE wallets ADD CONSTRAINT identity_has_one_wallet_in_its_application UNIQUE (app_id, identity);
ALTER TABLE wallets ADD CONSTRAINT wallet_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE wallets ADD CONSTRAINT wallets_pkey PRIMARY KEY (app_id, id);
ALTER TABLE wallets ENABLE ROW LEVEL SECURITY;
ALTER TABLE wallets FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON wallets FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT INSERT, SELECT, UPDATE ON wallets TO purser_app;
CREATE TABLE webhook_endpoints (
  app_id uuid NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  url text NOT NULL,
  types text[] COLLATE "C" NOT NULL,
  description text NOT NULL,
  status text NOT NULL,
  pause_reason text NOT NULL DEFAULT ''::text,
  secret bytea NOT NULL,
  previous_secret bytea,
  previous_until bigint NOT NULL DEFAULT 0,
  revision integer NOT NULL DEFAULT 1,
  last_seq bigint NOT NULL DEFAULT 0,
  failing_since bigint,
  succeeded_at bigint,
  created_at bigint NOT NULL,
  reset_after uuid
);
ALTER TABLE webhook_endpoints ADD CONSTRAINT status_is_known CHECK ((status = ANY (ARRAY['enabled'::text, 'paused'::text, 'disabled'::text])));
ALTER TABLE webhook_endpoints ADD CONSTRAINT webhook_endpoints_pkey PRIMARY KEY (app_id, id);
ALTER TABLE webhook_endpoints ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_endpoints FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhook_endpoints FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON webhook_endpoints TO purser_app;
CREATE TABLE webhook_events (
  app_id uuid NOT NULL,
  connection_id uuid NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  org_id uuid NOT NULL,
  type text NOT NULL,
  object_id text NOT NULL,
  api_version text NOT NULL,
  live boolean NOT NULL,
  outcome text NOT NULL,
  received_at bigint NOT NULL
);
ALTER TABLE webhook_events ADD CONSTRAINT webhook_is_listed_once UNIQUE (app_id, id);
ALTER TABLE webhook_events ADD CONSTRAINT webhook_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections(app_id, id);
ALTER TABLE webhook_events ADD CONSTRAINT webhook_is_taken_once PRIMARY KEY (app_id, connection_id, event_id);
ALTER TABLE webhook_events ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhook_events FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhook_events FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT ON webhook_events TO purser_app;
CREATE TABLE work_hints (
  app_id uuid NOT NULL,
  kind text NOT NULL,
  org_id uuid NOT NULL,
  due_at bigint,
  failing integer NOT NULL DEFAULT 0,
  failing_since bigint
);
ALTER TABLE work_hints ADD CONSTRAINT work_hints_pkey PRIMARY KEY (app_id, kind);
ALTER TABLE work_hints ADD CONSTRAINT work_kind_is_known CHECK ((kind = ANY (ARRAY['billing'::text, 'sandbox'::text])));
CREATE INDEX work_hints_by_time ON public.work_hints USING btree (kind, due_at) WHERE (due_at IS NOT NULL);
GRANT INSERT, SELECT, UPDATE ON work_hints TO purser_app;
CREATE TABLE work_queue (
  app_id uuid NOT NULL,
  kind text NOT NULL,
  object text COLLATE "C" NOT NULL,
  org_id uuid NOT NULL,
  due_at bigint NOT NULL,
  version uuid NOT NULL,
  tries integer NOT NULL DEFAULT 0,
  last_error text,
  connection_id uuid,
  failing_since bigint,
  lease_id uuid,
  leased_until bigint NOT NULL DEFAULT 0
);
ALTER TABLE work_queue ADD CONSTRAINT work_belongs_to_an_application FOREIGN KEY (app_id) REFERENCES app_state(app_id);
ALTER TABLE work_queue ADD CONSTRAINT work_is_of_a_connection FOREIGN KEY (app_id, connection_id) REFERENCES provider_connections(app_id, id);
ALTER TABLE work_queue ADD CONSTRAINT work_queue_pkey PRIMARY KEY (app_id, kind, object);
CREATE INDEX work_queue_by_time ON public.work_queue USING btree (app_id, due_at);
CREATE INDEX work_queue_failing ON public.work_queue USING btree (app_id, failing_since) WHERE (failing_since IS NOT NULL);
ALTER TABLE work_queue ENABLE ROW LEVEL SECURITY;
ALTER TABLE work_queue FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON work_queue FOR ALL USING (((app_id)::text = current_setting('purser.app_id'::text, true)));
GRANT DELETE, INSERT, SELECT, UPDATE ON work_queue TO purser_app;
