// Save as receive.mts. Node 23, Deno and Bun run it as it is; older Node with npx tsx.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";

const secret = Buffer.from(process.env.WEBHOOK_SECRET!.replace("whsec_", ""), "base64");

// Reports whether Purser signed the body, less than five minutes ago.
function isSigned(headers: IncomingHttpHeaders, body: string) {
  const timestamp = String(headers["webhook-timestamp"]);
  if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) < 300)) return false;
  const signed = createHmac("sha256", secret).update(`${headers["webhook-id"]}.${timestamp}.${body}`).digest("base64");
  const expected = Buffer.from(`v1,${signed}`);
  // There are two signatures while the secret is being rotated.
  return String(headers["webhook-signature"]).split(" ").some((signature) => {
    const sent = Buffer.from(signature);
    return sent.length === expected.length && timingSafeEqual(sent, expected);
  });
}

createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks).toString();
  const accepted = isSigned(request.headers, body);
  if (accepted) {
    const notification = JSON.parse(body);
    // Store the id, and skip one that you have seen: a webhook can come twice.
    console.log(notification.type, notification.identity ?? "", notification.data);
  }
  response.writeHead(accepted ? 204 : 401).end();
}).listen(Number(process.env.PORT ?? 3000), "127.0.0.1");
