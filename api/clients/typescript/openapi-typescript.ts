// The smallest bodies that the document allows, with the types of openapi-typescript.
import type { components, paths } from "./generated/openapi-typescript";

type Schemas = components["schemas"];

export const credit: Schemas["NewCredit"] = { key: "tokens", name: "Tokens", unit: "token" };
export const feature: Schemas["NewFeature"] = { key: "chat", name: "Chat", unit: "message", creditKey: "tokens", costNanocredits: "1" };
export const plan: Schemas["NewPlan"] = {
  key: "pro", name: "Pro", amountCents: 2900, currency: "eur", interval: "month", featureLimits: [{ featureKey: "chat", limit: 10 }],
};
export const planPatch: Schemas["PlanPatch"] = { name: "Pro" };
export const check: Schemas["UsageCheck"] = { identity: "ann", feature: "chat" };
export const event: Schemas["UsageEvent"] = { id: "1", identity: "ann", feature: "chat" };
export const deposit: Schemas["NewDeposit"] = { identity: "ann", creditKey: "tokens", amountNanocredits: "1", idempotencyKey: "1" };
export const checkout: Schemas["NewSubscriptionCheckout"] = {
  identity: "ann", planKey: "pro", successUrl: "https://shop.test/?session={CHECKOUT_SESSION_ID}", cancelUrl: "https://shop.test/", idempotencyKey: "1",
};

type Answer = paths["/v1/subscriptions/{identity}"]["get"]["responses"][200]["content"]["application/json"];
export const planOf = (answer: Answer): string | undefined => (answer === null ? undefined : answer.planKey);

export const permission: Schemas["Application"]["permissions"] = ["events:ingest"];
export const code: Schemas["Error"]["error"] = "insufficient_balance";
// @ts-expect-error is not a code
export const wrong: Schemas["Error"]["error"] = "nonsense";
