/** A webhook that checks what it is sent: the receiving side of push notifications, for people who write one. */
import { createHash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { PUSH_SIGNATURE_HEADER, verifyPushSignature } from "../auth/push-signature.ts";
import { PUSH_TOKEN_HEADER, type PushKeys, whyPushTokenFails } from "../auth/push-token.ts";

/** What every notification must show; what is absent here is not asked for. */
export interface InboxChecks {
  readonly token?: string;
  readonly secret?: string;
  readonly keys?: PushKeys;
  readonly issuer?: string;
}

export interface InboxOptions extends InboxChecks {
  readonly host: string;
  readonly port: number;
  /** Origin by which senders know this receiver; what it listens on unless given. */
  readonly origin?: string;
  /** From 0 to 1: how many of those that are in order are answered with 503 all the same. */
  readonly fail: number;
  readonly random: () => number;
  readonly now: () => number;
  readonly onArrival: (arrival: InboxArrival) => void;
}

export interface InboxArrival {
  /** Counts the arrivals. */
  readonly arrival: number;
  readonly path: string;
  readonly answer: number;
  /** Number of the event in its task's log, if the sender says. */
  readonly event: number | undefined;
  readonly task: string | undefined;
  readonly what: string;
  readonly contentType: string;
  /** By name of the check: `valid`, or what is wrong. */
  readonly checks: Readonly<Record<string, string>>;
  readonly verified: boolean;
  readonly body: unknown;
}

export interface Inbox {
  readonly url: string;
  close(): Promise<void>;
}

const MOST_BYTES = 16 * 1024 * 1024;

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
    const checks = await check(request, body, options, options.origin ?? urlOf(server, options.host));
    const verified = Object.values(checks).every((verdict) => verdict === "valid");
    const content = parsed(body);
    const answer = answerTo(verified, content !== undefined, options);
    response.writeHead(answer).end();
    options.onArrival({
      arrival: ++arrivals,
      path: request.url ?? "/",
      answer,
      event: eventNumber(request.headers["x-dragoman-event"]),
      ...describe(content),
      contentType: request.headers["content-type"] ?? "",
      checks,
      verified,
      body: content ?? body,
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      resolve();
    });
  });
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

function answerTo(verified: boolean, isJson: boolean, { fail, random }: InboxOptions): number {
  if (!verified) return 401;
  if (!isJson) return 400;
  return random() < fail ? 503 : 204;
}

/** Undefined if there is too much of it, or the sender went away. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of request) {
      bytes += (chunk as Buffer).byteLength;
      if (bytes > MOST_BYTES) return undefined;
      chunks.push(chunk as Buffer);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function check(
  { headers, url: path = "" }: IncomingMessage,
  body: string,
  { token, secret, keys, issuer, now }: InboxOptions,
  audience: string,
): Promise<Record<string, string>> {
  const checks: Record<string, string> = {};
  if (token !== undefined) checks.token = tokenVerdict(headers, token);
  if (secret !== undefined) {
    checks.signature = verifyPushSignature(
      single(headers[PUSH_SIGNATURE_HEADER]),
      secret,
      { url: `${audience}/${path.replace(/^\//, "")}`, body },
      now(),
    );
  }
  if (keys !== undefined) {
    const given = single(headers[PUSH_TOKEN_HEADER]) ?? bearerOf(headers.authorization);
    const expected = { keys, audience, body, now: now(), ...(issuer === undefined ? undefined : { issuer }) };
    checks.jwt = given === undefined ? "absent" : ((await whyPushTokenFails(given, expected)) ?? "valid");
  }
  return checks;
}

/** Senders spell it either way. */
function tokenVerdict(headers: IncomingHttpHeaders, token: string): "valid" | "absent" | "wrong" {
  const given = single(headers["x-a2a-notification-token"]) ?? single(headers["a2a-notification-token"]);
  if (given === undefined) return "absent";
  return timingSafeEqual(digest(given), digest(token)) ? "valid" : "wrong";
}

const digest = (text: string) => createHash("sha256").update(text).digest();

const single = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);

function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer (\S+)$/i.exec(authorization ?? "")?.[1];
}

function eventNumber(value: string | string[] | undefined): number | undefined {
  const text = single(value) ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

type Fields = Readonly<Record<string, unknown>>;

function parsed(body: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return isFields(value) && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;

/** In the words of whichever version it came in. */
function describe(content: Fields | undefined): { readonly task: string | undefined; readonly what: string } {
  if (content === undefined) return { task: undefined, what: "no JSON object" };
  for (const kind of ["task", "message", "statusUpdate", "artifactUpdate"]) {
    const value = content[kind];
    if (!isFields(value)) continue;
    return { task: textIn(value, "taskId") ?? textIn(value, "id"), what: withState(kind, value) };
  }
  return { task: textIn(content, "taskId") ?? textIn(content, "id"), what: withState("task", content) };
}

function withState(kind: string, { status }: Fields): string {
  const state = isFields(status) ? textIn(status, "state") : undefined;
  return state === undefined ? kind : `${kind} ${state}`;
}

function textIn(fields: Fields, name: string): string | undefined {
  const value = fields[name];
  return typeof value === "string" ? value : undefined;
}
