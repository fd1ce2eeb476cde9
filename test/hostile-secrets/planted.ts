/** Secrets that are put wherever callers can put one, and somebody who looks for them in what is written. */
import fc, { type Arbitrary } from "fast-check";
import type { HostileCall } from "../hostile/grpc-request.ts";
import { envelope, type HostileRequest, type Known, rpc } from "../hostile/hostile-request.ts";

/** In everything that is planted, and in nothing else. */
export const MARK = "pl4nt3d";

export const SECRETS = {
  key: `${MARK}-key-8c1f0a77`,
  wrong: `${MARK}-wrong-5b20dd41`,
  cookie: `${MARK}-cookie-77ab3e90`,
  query: `${MARK}-query-1d94c6f2`,
  token: `${MARK}-token-e0427b8a`,
  credentials: `${MARK}-credentials-96fd1c33`,
  thrown: `${MARK}-thrown-42c7e5b1`,
} as const;

export const RIGHT = `Bearer ${SECRETS.key}`;

/** Some show who they are, some lie about it, most say nothing. */
const credentials = fc.constantFrom<Readonly<Record<string, string>>>(
  { authorization: RIGHT },
  { authorization: RIGHT },
  { authorization: `Bearer ${SECRETS.wrong}` },
  { authorization: `Basic ${SECRETS.wrong}` },
  { authorization: SECRETS.wrong },
  { "x-api-key": SECRETS.wrong },
  { "proxy-authorization": `Bearer ${SECRETS.wrong}` },
  {},
  {},
);
const extras = fc.constantFrom<Readonly<Record<string, string>>>(
  {},
  { cookie: `session=${SECRETS.cookie}; other=${SECRETS.cookie}` },
  { "x-auth-token": SECRETS.token },
);
const beside = fc.tuple(credentials, extras).map(([one, other]) => ({ ...one, ...other }));
const query = fc.constantFrom("", "", `access_token=${SECRETS.query}&api_key=${SECRETS.query}`);

/** The same requests, with secrets beside what they say. */
export function withSecrets(requests: Arbitrary<HostileRequest>): Arbitrary<HostileRequest> {
  return fc.tuple(requests, beside, query).map(([request, headers, more]) => {
    const { raw } = request;
    const path = raw.path ?? "";
    const planted = more === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${more}`;
    return { ...request, raw: { ...raw, path: planted, headers: { ...raw.headers, ...headers } } };
  });
}

export function callsWithSecrets(calls: Arbitrary<HostileCall>): Arbitrary<HostileCall> {
  return fc.tuple(calls, beside).map(([call, headers]) => ({ ...call, headers: { ...call.headers, ...headers } }));
}

/** Webhooks with secrets, some of them in places where they are refused. */
export function webhooks(known: () => Known): Arbitrary<HostileRequest> {
  const authentication = { scheme: "Bearer", credentials: SECRETS.credentials };
  const url = fc.constantFrom(
    `https://hook.example/?token=${SECRETS.token}`,
    `https://user:${SECRETS.credentials}@hook.example/`,
    `not a url ${SECRETS.token}`,
  );
  return url.map((target) => {
    const config = { taskId: known().waiting, url: target, token: SECRETS.token, authentication };
    return rpc("webhook", envelope("CreateTaskPushNotificationConfig", JSON.stringify(config)));
  });
}

/** Reads what is written and keeps only what should not have been. */
export class Watcher {
  lines = 0;
  readonly leaks: string[] = [];

  write(text: string): void {
    this.lines++;
    if (text.includes(MARK) && this.leaks.length < 10) this.leaks.push(text.slice(0, 2_000));
  }
}
