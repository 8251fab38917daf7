// The smallest bodies that the document allows, through the client of hey-api.
import { createDeposit, createFeature, createPlan, getSubscription, trackUsage } from "./generated/hey-api";

export async function run(): Promise<string | undefined> {
  await createFeature({ body: { key: "chat", name: "Chat", unit: "message", creditKey: "tokens", costNanocredits: "1" } });
  await createPlan({
    body: { key: "pro", name: "Pro", amountCents: 2900, currency: "eur", interval: "month", featureLimits: [{ featureKey: "chat", limit: 10 }] },
  });
  await trackUsage({ body: { id: "1", identity: "ann", feature: "chat" } });
  await createDeposit({
    body: { identity: "ann", creditKey: "tokens", amountNanocredits: "1", idempotencyKey: "1" },
    headers: { "Idempotency-Key": "1" },
  });
  const { data, error } = await getSubscription({ path: { identity: "ann" } });
  if (error?.error === "rate_limited") {
    return error.message;
  }
  return data?.planKey;
}
