import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Log, LogFields } from "../../model/ports.ts";
import { createLog } from "./log.ts";
import { isSecretName, REDACTED, Redactor, redactText, withRedaction } from "./redact.ts";

const SECRET = "planted-4f9c1b7e";

async function lines(write: (log: Log) => void, secrets?: readonly string[]): Promise<string> {
  let text = "";
  const destination = {
    write(line: string) {
      text += line;
    },
  };
  const log = await createLog({ level: "debug", pretty: false, destination, ...(secrets && { secrets }) });
  write(log);
  return text;
}

it("logs nothing that a terminal would obey, and one line for each message", async () => {
  const evil = "x\u001b[2J\u009b31m\u202e\u2028";
  const written = await lines((log) => {
    log.info({ taskId: evil, [evil]: [evil], err: new Error(evil) }, `Task ${evil}\nforged`);
  });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be left
  expect(written).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/);
  expect(JSON.parse(written)).toMatchObject({
    taskId: "x\\x1b[2J\\x9b31m\\u202e\\u2028",
    msg: "Task x\\x1b[2J\\x9b31m\\u202e\\u2028\\nforged",
  });
});

class ConnectError extends Error {
  readonly options: unknown;
  constructor(message: string, options: unknown, cause: unknown) {
    super(message, { cause });
    this.options = options;
  }
}

/** A token in the form of a JSON Web Token, with the planted value in it. */
const JWT = `eyJhbGciOiJIUzI1NiJ9.${Buffer.from(SECRET).toString("base64url")}xxxx.${SECRET}`;

const PLANTED: readonly (readonly [string, LogFields, string])[] = [
  ["a header", { headers: { authorization: `Bearer ${SECRET}`, "content-type": "x" } }, "request"],
  ["a header in capitals", { headers: { "X-API-Key": SECRET, "Set-Cookie": [SECRET] } }, "request"],
  ["deep headers", { a: { b: { c: { request: { headers: { cookie: `s=${SECRET}` } } } } } }, "request"],
  ["raw headers", { rawHeaders: ["Host", "x", "Authorization", SECRET, "Cookie", SECRET] }, "request"],
  ["header pairs", { headers: [["x-api-key", SECRET]] }, "request"],
  ["Headers", { headers: new Headers({ authorization: SECRET, "x-auth-token": SECRET }) }, "request"],
  ["a Map", { headers: new Map([["proxy-authorization", SECRET]]) }, "request"],
  [
    "a push config",
    {
      config: { id: "c", url: "https://x/", token: SECRET, authentication: { scheme: "Bearer", credentials: SECRET } },
    },
    "registered",
  ],
  ["a list of configs", { configs: [{ token: SECRET }, { authentication: { credentials: SECRET } }] }, "registered"],
  ["login in a URL", { url: `https://user:${SECRET}@example.com/x` }, "fetch"],
  ["name in a URL", { url: `https://${SECRET}@example.com/x` }, "fetch"],
  ["a URL object", { url: new URL(`https://u:${SECRET}@example.com/?access_token=${SECRET}`) }, "fetch"],
  ["a query", { url: `/agents/echo?api_key=${SECRET}&x=1&access_token=${SECRET}#token=${SECRET}` }, "fetch"],
  ["a login's answer", { url: `http://127.0.0.1/callback?code=${SECRET}&state=${SECRET}` }, "callback"],
  ["an encoded query", { text: `?next=https%3A%2F%2Fx%2F%3Ftoken%3D${SECRET}` }, "fetch"],
  ["the message", {}, `GET /?token=${SECRET} failed, Authorization: Basic ${SECRET}`],
  ["a line of headers", {}, `Cookie: a=b; session=${SECRET}; c=${SECRET}`],
  ["an error", { err: new Error(`401 for Bearer ${SECRET}`) }, "failed"],
  [
    "causes",
    { err: new Error("outer", { cause: new Error("inner", { cause: new Error(`password=${SECRET}`) }) }) },
    "failed",
  ],
  ["members of an error", { err: new ConnectError("x", { headers: { authorization: SECRET } }, undefined) }, "failed"],
  ["a cause that is no error", { err: new ConnectError("x", {}, { request: { apiKey: SECRET } }) }, "failed"],
  ["many errors", { err: new AggregateError([new Error(`token: ${SECRET}`)], "all failed") }, "failed"],
  ["JSON in a text", { body: JSON.stringify({ token: SECRET, nested: { clientSecret: SECRET } }) }, "body"],
  ["JSON with escapes", { body: JSON.stringify({ password: `"${SECRET}\\"` }) }, "body"],
  ["a JSON Web Token", { text: `got ${JWT} from there` }, "body"],
  ["a private key", { text: `-----BEGIN PRIVATE KEY-----\n${SECRET}\n-----END PRIVATE KEY-----` }, "body"],
  ["an access key", { ak: SECRET, sk: SECRET, secretAccessKey: SECRET, private_key: { d: SECRET } }, "config"],
  ["a name with a value", { [`token=${SECRET}`]: 1 }, "odd"],
];

describe("what is logged", () => {
  it.each(PLANTED)("holds no secret from %s", async (_, fields, message) => {
    const text = await lines((log) => {
      log.debug(fields, message);
      log.error(fields, message);
    });
    expect(text.trimEnd().split("\n")).toHaveLength(2);
    expect(text).not.toContain(SECRET);
    expect(text).not.toContain(Buffer.from(SECRET).toString("base64url"));
    expect(text).toContain(REDACTED);
  });

  it.each(PLANTED)("holds none from %s in a log of one's own either", (_, fields, message) => {
    const received: unknown[] = [];
    const write = (...args: unknown[]) => received.push(...args);
    const own = { debug: write, info: write, warn: write, error: write };
    const log = withRedaction(own);
    log.debug(fields, message);
    expect(received).toHaveLength(2);
    expect(JSON.stringify(received)).not.toContain(SECRET);
    expect(withRedaction(log)).toBe(log);
  });

  it("holds no secret that is known, wherever it stands", async () => {
    const text = await lines(
      (log) => log.info({ note: `it was ${SECRET}!`, [SECRET]: [SECRET] }, `and ${SECRET}`),
      [SECRET, "abc"],
    );
    expect(text).not.toContain(SECRET);
    expect(text).toContain("it was [redacted]!");
  });

  it("is otherwise as it was", async () => {
    const fields = {
      url: "https://agents.example.com/agents/echo?A2A-Version=1.0&pageToken=abc",
      task: "0190-x",
      count: 3,
      pageToken: "cursor",
      "idempotency-key": "again",
      tokens: 12,
      ok: true,
      nothing: null,
      list: ["a", { b: 1 }],
      at: new Date(0),
    };
    const text = await lines((log) => log.info(fields, "The key to it all: tokens, secrets and cookies."));
    expect(JSON.parse(text)).toMatchObject({
      ...fields,
      at: "1970-01-01T00:00:00.000Z",
      msg: "The key to it all: tokens, secrets and cookies.",
    });
  });

  it("shows the agents of a server whatever their names are, and lists elsewhere as before", async () => {
    const agents = ["auth", "echo", "cookie-jar", "fox"];
    const text = await lines((log) => log.info({ agents, names: agents, inner: { agents } }, "Listening."));
    const redacted = ["auth", REDACTED, "cookie-jar", REDACTED];
    expect(JSON.parse(text)).toMatchObject({ agents, names: redacted, inner: { agents: redacted } });
    const planted = await lines((log) => log.info({ agents: ["auth", `token=${SECRET}`, JWT] }, "Listening."));
    expect(planted).not.toContain(SECRET);
    expect(planted).not.toContain(JWT);
  });

  it("shows an error's type, message, stack and code", async () => {
    const text = await lines((log) => log.error({ err: Object.assign(new TypeError("bad"), { code: "E1" }) }, "x"));
    const { err } = JSON.parse(text);
    expect(err).toMatchObject({ type: "TypeError", message: "bad", code: "E1" });
    expect(err.stack).toContain("redact.test.ts");
  });

  it("is bounded and never throws, whatever it is about", async () => {
    const circle: Record<string, unknown> = { name: "circle" };
    circle.self = circle;
    const trap = Object.defineProperty({}, "boom", {
      enumerable: true,
      get() {
        throw new Error("no");
      },
    });
    const text = await lines((log) => {
      log.info({ circle, trap, bytes: Buffer.alloc(9_999), many: Array.from({ length: 9_999 }, () => "x") }, "odd");
      log.info({ long: "y".repeat(9_999_999) }, "long");
    });
    expect(text.length).toBeLessThan(40_000);
    expect(text).toContain("[circular]");
    expect(text).toContain("[unreadable]");
    fc.assert(
      fc.property(fc.object({ withBigInt: true, withDate: true, withMap: true, withSet: true }), (value) => {
        new Redactor().fields({ value });
      }),
    );
  });

  it("does not take long, however it was made up", () => {
    const nasty = [
      "a",
      "a.",
      "key-",
      "token",
      "eyJ-",
      "-----BEGIN ",
      "bearer ",
      "a://",
      '"',
      "\\",
      "cookie:",
      "?code=",
    ];
    const began = performance.now();
    for (const piece of nasty) redactText(`key ${piece.repeat(Math.ceil(40_000 / piece.length))}`);
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  it("knows secrets by their names", () => {
    const secret = ["apiKey", "API_KEY", "x-api-key", "accessToken", "refresh_token", "clientSecret", "passwd"];
    const plain = ["pageToken", "nextPageToken", "idempotencyKey", "author", "monkey", "keyboard", "kid", "tokenUrl"];
    expect(secret.filter(isSecretName)).toEqual(secret);
    expect(plain.filter(isSecretName)).toEqual([]);
  });
});

it("hides a short known secret as a word of its own, and leaves words that contain it", () => {
  const redactor = new Redactor(["change", "planted-4f9c1b7e-long"]);
  expect(redactor.text("the key change, changed, exchange, x:change!")).toBe(
    `the key ${REDACTED}, changed, exchange, x:${REDACTED}!`,
  );
  expect(redactor.text("xxplanted-4f9c1b7e-longxx")).toBe(`xx${REDACTED}xx`);
});

it("hides any known secret, whatever characters it has", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 6, maxLength: 30, unit: "grapheme" }), (secret) => {
      expect(new Redactor([secret]).text(`(${secret})`)).toBe(`(${REDACTED})`);
    }),
  );
});

it("takes a syntax error for what it is", () => {
  expect(redactText("ParseError: Unexpected token \n /srv/agents/hello.ts:1:16")).toContain(
    "/srv/agents/hello.ts:1:16",
  );
  expect(redactText("Unexpected token abcdef in JSON")).toContain("abcdef");
});
