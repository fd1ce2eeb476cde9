/** A webhook that verifies the push notifications it receives, for developers who write a receiver. */

import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  createRemotePushKeys,
  findPushTokenProblem,
  PUSH_SIGNATURE_HEADER,
  PUSH_TOKEN_HEADER,
  type PushKeys,
  verifyPushSignature,
} from "../../auth/signatures/sign-push.ts";
import { isObject } from "../../model/json.ts";
import { CommandError } from "../errors.ts";
import { ifGiven, readHttpUrl, readNumber, readPort } from "../flag-values.ts";
import { type Output, printJson } from "../output.ts";
import { field } from "../render/text.ts";

/** What every notification must carry; absent checks are skipped. */
interface InboxChecks {
  readonly token?: string;
  readonly secret?: string;
  readonly keys?: PushKeys;
  readonly issuer?: string;
}

export interface InboxOptions extends InboxChecks {
  readonly host: string;
  readonly port: number;
  /** Origin of this receiver as senders see it; default: the address it listens on. */
  readonly origin?: string;
  /** Fraction, from 0 to 1, of the valid notifications that are answered with 503. */
  readonly fail: number;
  readonly random: () => number;
  readonly now: () => number;
  readonly onNotification: (arrival: ReceivedNotification) => void;
}

export interface ReceivedNotification {
  /** Sequence number of the request. */
  readonly arrival: number;
  readonly path: string;
  readonly answer: number;
  /** Number of the event in its task's log, if the sender provides it. */
  readonly event: number | undefined;
  readonly task: string | undefined;
  readonly what: string;
  readonly contentType: string;
  /** Results by name of the check: `valid`, or what is wrong. */
  readonly checks: Readonly<Record<string, string>>;
  readonly verified: boolean;
  readonly body: unknown;
}

export interface Inbox {
  readonly url: string;
  close(): Promise<void>;
}

const MAX_BODY_BYTES = 16 * 1024 * 1024;

export async function openInbox(options: InboxOptions): Promise<Inbox> {
  let arrivals = 0;
  const server = createServer(async (request, response) => {
    if (request.method !== "POST") {
      response.writeHead(405, { allow: "POST" }).end();
      return;
    }
    const body = await readBody(request);
    if (body === undefined) {
      response.writeHead(413, { connection: "close" }).end();
      return;
    }
    const checks = await runChecks(request, body, options, options.origin ?? urlOf(server, options.host));
    const verified = Object.values(checks).every((verdict) => verdict === "valid");
    const content = parseObject(body);
    const answer = chooseStatus(verified, content !== undefined, options);
    response.writeHead(answer).end();
    options.onNotification({
      arrival: ++arrivals,
      path: request.url ?? "/",
      answer,
      event: parseEventNumber(request.headers["x-dragoman-event"]),
      ...describeNotification(content),
      contentType: request.headers["content-type"] ?? "",
      checks,
      verified,
      body: content ?? body,
    });
  });
  server.listen(options.port, options.host);
  await once(server, "listening");
  return {
    url: urlOf(server, options.host),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeIdleConnections();
      }),
  };
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function chooseStatus(verified: boolean, isJson: boolean, { fail, random }: InboxOptions): number {
  if (!verified) return 401;
  if (!isJson) return 400;
  return random() < fail ? 503 : 204;
}

/** Undefined if it is too large or the sender disconnected. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request) {
      bytes += (chunk as Buffer).byteLength;
      if (bytes > MAX_BODY_BYTES) return undefined;
      chunks.push(chunk as Buffer);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function runChecks(
  { headers, url: path = "" }: IncomingMessage,
  body: string,
  { token, secret, keys, issuer, now }: InboxOptions,
  audience: string,
): Promise<Record<string, string>> {
  const checks: Record<string, string> = {};
  if (token !== undefined) checks.token = checkToken(headers, token);
  if (secret !== undefined) {
    checks.signature = verifyPushSignature(
      firstValue(headers[PUSH_SIGNATURE_HEADER]),
      secret,
      { url: `${audience}/${path.replace(/^\//, "")}`, body },
      now(),
    );
  }
  if (keys !== undefined) {
    const given = firstValue(headers[PUSH_TOKEN_HEADER]) ?? bearerOf(headers.authorization);
    const expected = { keys, audience, body, now: now(), issuer };
    checks.jwt = given === undefined ? "absent" : ((await findPushTokenProblem(given, expected)) ?? "valid");
  }
  return checks;
}

/** Senders use either header name. */
function checkToken(headers: IncomingHttpHeaders, token: string): "valid" | "absent" | "wrong" {
  const given = firstValue(headers["x-a2a-notification-token"]) ?? firstValue(headers["a2a-notification-token"]);
  if (given === undefined) return "absent";
  return timingSafeEqual(digest(given), digest(token)) ? "valid" : "wrong";
}

const digest = (text: string) => createHash("sha256").update(text).digest();

const firstValue = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);

function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer (\S+)$/i.exec(authorization ?? "")?.[1];
}

function parseEventNumber(value: string | string[] | undefined): number | undefined {
  const text = firstValue(value) ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

type JsonFields = Readonly<Record<string, unknown>>;

function parseObject(body: string): JsonFields | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Uses the names of the protocol version in which it was received. */
function describeNotification(content: JsonFields | undefined) {
  if (content === undefined) return { task: undefined, what: "no JSON object" };
  const kind = ["task", "message", "statusUpdate", "artifactUpdate"].find((name) => isObject(content[name])) ?? "task";
  const event = isObject(content[kind]) ? content[kind] : content;
  const state = isObject(event.status) ? textMember(event.status, "state") : undefined;
  const what = state === undefined ? kind : `${kind} ${state}`;
  return { task: textMember(event, "taskId") ?? textMember(event, "id"), what };
}

function textMember(fields: JsonFields, name: string): string | undefined {
  const value = fields[name];
  return typeof value === "string" ? value : undefined;
}

export interface PushInboxFlags {
  readonly port: string;
  readonly host: string;
  readonly token?: string;
  readonly jwks?: string;
  readonly issuer?: string;
  readonly publicUrl?: string;
  readonly fail?: string;
  readonly count?: string;
  readonly output?: "text" | "json";
}

/** Not a flag: other users of the machine can read command lines. */
const SECRET_VARIABLE = "DRAGOMAN_PUSH_SECRET";

export async function pushInbox(output: Output, flags: PushInboxFlags): Promise<void> {
  const count = flags.count === undefined ? Number.POSITIVE_INFINITY : readNumber("--count", flags.count, 1, 1e9);
  const fail = flags.fail === undefined ? 0 : readNumber("--fail", flags.fail, 0, 100) / 100;
  const port = readPort("--port", flags.port);
  const origin = ifGiven(flags.publicUrl, (text) => readHttpUrl("--public-url", text).origin);
  let unverified = 0;
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const inbox = await openInbox({
    ...readChecks(flags),
    host: flags.host,
    port,
    origin,
    fail,
    random: Math.random,
    now: Date.now,
    onNotification: (arrival) => {
      if (flags.output === "json") printJson(output, arrival, "line");
      else output.write(renderNotification(arrival));
      if (!arrival.verified) unverified++;
      if (arrival.arrival >= count) finish();
    },
  });
  output.info(`Waiting for push notifications at ${inbox.url}; press Ctrl-C to quit.`);
  process.once("SIGINT", finish).once("SIGTERM", finish);
  await finished;
  process.removeListener("SIGINT", finish).removeListener("SIGTERM", finish);
  await inbox.close();
  if (unverified > 0) {
    throw new CommandError("DRAGOMAN_ERR_UNVERIFIED", `${unverified} notifications could not be verified.`);
  }
}

function readChecks({ token, jwks, issuer }: PushInboxFlags): InboxChecks {
  const secret = process.env[SECRET_VARIABLE] || undefined;
  const keys = ifGiven(jwks, (url) => createRemotePushKeys(readHttpUrl("--jwks", url)));
  return { token, secret, keys, issuer };
}

function renderNotification({ arrival, event, task, what, checks, answer, path }: ReceivedNotification): string {
  const verdicts = Object.entries(checks).map(([name, verdict]) => field(CHECK_LABELS[name] ?? name, verdict));
  return [
    field("Notification", arrival),
    field("Path", path.split("?", 1)[0] ?? "/"),
    field("Task", task ?? "unknown"),
    field("Event", event === undefined ? what : `${event} ${what}`),
    ...verdicts,
    field("Answer", answer),
    "\n",
  ].join("");
}

const CHECK_LABELS: Readonly<Record<string, string>> = { token: "Token", signature: "Signature", jwt: "JWT" };
