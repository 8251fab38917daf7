// Save as track.mts. Node 23, Deno and Bun run it as it is; older Node with npx tsx.
const api = "{{.Address}}/v1";

async function post(path: string, body: object) {
  const response = await fetch(api + path, {
    method: "POST",
    headers: { Authorization: `Bearer ${process.env.PURSER_KEY}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  });
  return { status: response.status, answer: await response.json() };
}

// A UUIDv7: ids that sort by time are stored cheaply.
function newID() {
  const time = Date.now().toString(16).padStart(12, "0");
  const random = crypto.randomUUID(); // its version and variant are in the same places
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(15)}`;
}

// Sends the use until there is an answer. With the same id it is charged once.
async function track(use: { id: string; identity: string; feature: string }) {
  for (let wait = 200; wait < 10_000; wait *= 2) {
    try {
      const { status, answer } = await post("/events", use);
      if (status !== 429 && status < 500) return answer;
    } catch {
      // No answer: whether it was charged is unknown, so ask again.
    }
    await new Promise((done) => setTimeout(done, wait));
  }
  throw new Error(`no answer for ${use.id}: keep the id and try again later`);
}

const use = { identity: "{{.Identity}}", feature: "{{.Feature}}" };
const { answer: check } = await post("/check", use);
if (!check.allowed) throw new Error(`not allowed: ${check.reason ?? check.error} ${check.message ?? ""}`);

// Do the work here, then say that it happened.
const charge = await track({ id: newID(), ...use });
if (charge.error) throw new Error(`${charge.error}: ${charge.message}`);
console.log(charge.status, charge.amountNanocredits, charge.transactionId);
