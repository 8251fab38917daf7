// A client for Purser. Needs Node 20 or later, Deno or Bun, and nothing else.
const url = process.env.PURSER_URL ?? "http://127.0.0.1:8080";
const key = process.env.PURSER_KEY;

/** A request that Purser declined. Decide by code: it never changes. */
export class PurserError extends Error {
  status: number;
  code: string;
  answer: any;

  constructor(status: number, answer: any) {
    super(`${answer.error}: ${answer.message}`);
    this.status = status;
    this.code = answer.error;
    this.answer = answer;
  }
}

export const get = (path: string) => call("GET", path);
export const post = (path: string, body: object) => call("POST", path, body);
export const patch = (path: string, body: object) => call("PATCH", path, body);

/**
 * Sends a request until Purser responds. It is safe to repeat: the id of an event and the
 * idempotency key of a payment are in the body.
 */
export async function call(method: string, path: string, body?: object): Promise<any> {
  for (let attempt = 0; attempt < 6; attempt++) {
    let wait = 200 * 2 ** attempt;
    try {
      const response = await fetch(url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(20_000),
      });
      if (response.ok) return await response.json();
      if (response.status !== 429 && response.status < 500) throw new PurserError(response.status, await response.json());
      wait = Number(response.headers.get("Retry-After")) * 1000 || wait;
    } catch (problem) {
      if (problem instanceof PurserError) throw problem;
    }
    await new Promise((done) => setTimeout(done, wait));
  }
  throw new Error(`no response from ${url}: keep the id and try again later`);
}
