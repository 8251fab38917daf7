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
 * Sends a request until Purser responds. A POST without an id, an idempotency key or events
 * may have been carried out when its response is lost: it is only repeated after 429.
 */
export async function call(method: string, path: string, body?: object): Promise<any> {
  const repeatable =
    method !== "POST" || path === "/v1/check" || path === "/v1/explain" || ["id", "idempotencyKey", "events"].some((name) => name in (body ?? {}));
  for (let attempt = 0; attempt < 6; attempt++) {
    let wait = 200 * 2 ** attempt;
    let status = 0;
    let text = "";
    try {
      const response = await fetch(url + path, {
        method,
        headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
        body: body && JSON.stringify(body),
        redirect: "manual", // to follow one would turn a POST into a GET
        signal: AbortSignal.timeout(40_000),
      });
      wait = Number(response.headers.get("Retry-After")) * 1000 || wait;
      text = await response.text();
      status = response.status;
    } catch {}
    if (status >= 200 && status < 300) return JSON.parse(text);
    if (status !== 0 && status !== 429 && status < 500) throw new PurserError(status, read(status, text));
    if (status !== 429 && !repeatable) throw new Error(`no response from ${url}: read whether it was done before you send it again`);
    await new Promise((done) => setTimeout(done, wait));
  }
  throw new Error(`no response from ${url}: keep the id and try again later`);
}

function read(status: number, text: string): any {
  try {
    return JSON.parse(text);
  } catch {
    return { error: "unexpected_response", message: `status ${status}: is ${url} Purser's address?` };
  }
}
