-- The list of a plan's subscriptions. Like the index by status, it is of no use to the
-- engine, which names no plan.
CREATE INDEX subscriptions_of_a_plan ON subscriptions (app_id, plan_id, status, id) WHERE plan_id IS NOT NULL;
