// A harness in Node that has its tool calls run by toolonce. It needs Redis and PROTOCOL.md, and no Python.
//
//   npm install
//   node harness.mjs --tenant acme --scope talk-1 --turn step-1 < turn.json
//
// turn.json is a response of Anthropic's as it came, not streamed. It is handed over as it is: toolonce decides whether
// the turn ended properly, and integers stay exact, which JSON.parse would round. Printed is the next user message: one
// tool_result for each call, in call order. Running it again with the same tenant, scope and turn runs nothing again
// and prints the same.

import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { createClient } from "redis";

const { values: options } = parseArgs({
  options: {
    tenant: { type: "string" },
    scope: { type: "string" },
    turn: { type: "string" },
    namespace: { type: "string", default: "toolonce" },
    wait: { type: "string", default: "60" },
  },
});

/** Connect to TOOLONCE_REDIS_URL, which may name a unix socket. */
async function connect(url = process.env.TOOLONCE_REDIS_URL ?? "redis://localhost:6379") {
  const unix = url.startsWith("unix://");
  const client = createClient(unix ? { socket: { path: url.slice("unix://".length) } } : { url });
  client.on("error", (error) => console.error(`redis: ${error.message}`));
  await client.connect();
  return client;
}

/** Seal a text with the tenant's entry key: a Fernet token. Needed for tools with secret fields. */
function seal(plain, entryKey) {
  const key = Buffer.from(entryKey, "base64url");
  const now = Buffer.alloc(8);
  now.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 1000)));
  const iv = randomBytes(16);
  const cipher = createCipheriv("aes-128-cbc", key.subarray(16), iv);
  const signed = Buffer.concat([Buffer.from([0x80]), now, iv, cipher.update(plain, "utf8"), cipher.final()]);
  const mac = createHmac("sha256", key.subarray(0, 16)).update(signed).digest();
  return Buffer.concat([signed, mac]).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}

/** Hand the response over; returns the id of the inbox entry. Safe to repeat: tenant, scope, turn identify its calls. */
async function submit(client, body) {
  const entryKey = process.env.TOOLONCE_ENTRY_KEY; // as `toolonce keys seal --tenant ...` prints it
  const entry = { scope: options.scope, turn: options.turn, dialect: "anthropic", streamed: "0" };
  const added = await client.xAdd(`{${options.namespace}}:inbox:${options.tenant}`, "*", {
    ...entry,
    body: entryKey ? seal(body, entryKey) : body,
    sealed: entryKey ? "1" : "0",
  });
  await client.sAdd(`{${options.namespace}}:inboxes`, options.tenant);
  return added;
}

/** The answers for an entry by position, as far as they came within the time. */
async function answers(client, entry, seconds) {
  const stream = `{${options.namespace}}:answers:${options.tenant}:${entry}`;
  const until = Date.now() + seconds * 1000;
  const found = new Map();
  let last = "0";
  let expected = Infinity;
  while (found.size < expected && Date.now() < until) {
    const reply = await client.xRead({ key: stream, id: last }, { BLOCK: Math.max(1, until - Date.now()) });
    for (const { id, message } of reply?.[0]?.messages ?? []) {
      last = id;
      if (message.state === "quarantined") throw new Error(JSON.parse(message.error).message);
      if (message.state === "admitted") expected = Number(message.calls);
      else found.set(Number(message.position), message);
    }
  }
  return found;
}

/** What the model is told. Only `succeeded` is a result; `unknown` must never be told as success or as failure. */
function told(answer) {
  if (!answer) return ["The call is still running. Do not call it again; its result will follow.", false];
  if (answer.state === "succeeded") return [answer.result, false];
  const { code, message } = answer.error ? JSON.parse(answer.error) : { code: answer.state, message: "" };
  if (answer.state === "unknown") {
    return ["It is not known whether the call took effect. Do not claim success and do not call it again.", true];
  }
  return [`Error [${code}]: ${message}`, true];
}

const body = await text(process.stdin);
const asked = JSON.parse(body).content.filter((block) => block.type === "tool_use");
const client = await connect();
try {
  const entry = await submit(client, body);
  console.error(`entry ${entry}`);
  const found = await answers(client, entry, Number(options.wait));
  // Anthropic's ids are unique. Where a server counts them per turn, reply_id stands in for id here and in the turn itself.
  const content = asked.map(({ id }, position) => {
    const [said, isError] = told(found.get(position));
    return { type: "tool_result", tool_use_id: id, content: said, is_error: isError };
  });
  console.log(JSON.stringify({ role: "user", content }));
} finally {
  client.destroy();
}
