/** Clients of the official libraries log in to our server. */
import {
  type AuthenticationHandler,
  ClientFactory,
  createAuthenticatingFetchWithRetry,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import {
  createAuthenticatingFetchWithRetry as createV03AuthenticatingFetch,
  AgentCardResolver as V03CardResolver,
  ClientFactory as V03ClientFactory,
  JsonRpcTransportFactory as V03JsonRpcTransportFactory,
  RestTransportFactory as V03RestTransportFactory,
} from "a2a-js-sdk-0.3/client";
import { describe, expect, it, vi } from "vitest";
import { driveSdkV1 } from "../interop/clients/sdk-v1.ts";
import { driveSdkV03 } from "../interop/clients/sdk-v03.ts";
import type { Credentials, Driver } from "../interop/driver.ts";
import { BINDINGS, SDK_V1, SDK_V03 } from "../interop/pairs.ts";
import { collect, says, sendTask } from "../interop/send-helpers.ts";
import { BUILTIN_AGENTS } from "../support/builtin-agents.ts";
import { Issuer } from "../support/issuer.ts";
import { startServer } from "../support/lifecycle.ts";

const KEY = "planted-key-0123456789";
const HOOK = { url: "https://hook.example/" };

// The libraries write what they think of each refusal to the console.
for (const method of ["error", "warn", "info", "log"] as const) vi.spyOn(console, method).mockImplementation(() => {});
const issuer = await Issuer.start();
const server = await startServer({
  agents: { echo: BUILTIN_AGENTS.echo() },
  auth: {
    apiKeys: [{ key: KEY, owner: "alice" }],
    apiKey: { header: "X-Interop-Key" },
    jwt: { issuer: issuer.url, audience: issuer.audience },
  },
});

const bearing = (token: string): Credentials => ({ Authorization: `Bearer ${token}` });

const RIGHT: Readonly<Record<string, () => Promise<Credentials>>> = {
  "an API key in the header of choice": async () => ({ "X-Interop-Key": KEY }),
  "an API key as bearer token": async () => bearing(KEY),
  "a JWT": async () => bearing(await issuer.token("alice")),
};

const WRONG: Readonly<Record<string, readonly [() => Promise<Credentials>, RegExp]>> = {
  nothing: [async () => ({}), /Credentials are needed/],
  "another key": [async () => ({ "X-Interop-Key": `${KEY}0` }), /The API key is not valid/],
  "an expired JWT": [async () => bearing(await issuer.token("alice", { lasts: -600 })), /The token has expired/],
  "a forged JWT": [async () => bearing(await issuer.token("alice", { forged: true })), /The token is not valid/],
};

const OPERATIONS: Readonly<Record<string, (driver: Driver, id: string) => Promise<unknown>>> = {
  send: (driver) => driver.send(says("hello")),
  stream: (driver) => collect(driver.stream(says("hello"))),
  get: (driver, id) => driver.get(id),
  cancel: (driver, id) => driver.cancel(id),
  subscribe: (driver, id) => collect(driver.subscribe(id)),
  "create a push config": (driver, id) => driver.createPushConfig(id, HOOK),
  "list push configs": (driver, id) => driver.listPushConfigs(id),
};

const CLIENTS = [
  [SDK_V1, driveSdkV1, "1.0"],
  [SDK_V1, driveSdkV1, "0.3"],
  [SDK_V03, driveSdkV03, "0.3"],
] as const;

for (const [client, drive, version] of CLIENTS) {
  describe.each(BINDINGS)(`${client} in ${version} over %s`, (binding) => {
    it.each(Object.keys(RIGHT))("is let in with %s", async (name) => {
      const credentials = await RIGHT[name]?.();
      const driver = await drive(server.url, binding, version, credentials);
      const { id, status } = await sendTask(driver, says("hello"));
      expect(status.state).toBe("TASK_STATE_COMPLETED");
      expect((await collect(driver.stream(says("hello")))).length).toBeGreaterThan(2);
      expect((await driver.get(id)).id).toBe(id);
      expect(await driver.createPushConfig(id, HOOK)).toMatchObject({ ...HOOK, taskId: id });
    });

    it.each(Object.keys(WRONG))("is refused with %s, whatever it asks for", async (name) => {
      const [credentials, words] = WRONG[name] ?? [];
      const right = await drive(server.url, binding, version, { "X-Interop-Key": KEY });
      const { id } = await sendTask(right, says("hello"));
      const driver = await drive(server.url, binding, version, await credentials?.());
      for (const [operation, ask] of Object.entries(OPERATIONS)) {
        const refused = await ask(driver, id).then(() => "It was answered.", String);
        expect([operation, refused]).toEqual([operation, expect.stringMatching(words ?? /^$/)]);
      }
    });
  });
}

/** Shows nothing until it is asked, by our challenge, for a bearer token. */
function handler(token: string): AuthenticationHandler & { readonly challenges: (string | null)[] } {
  let known: Record<string, string> = {};
  const challenges: (string | null)[] = [];
  return {
    challenges,
    headers: async () => known,
    async shouldRetryWithHeaders(_request, response) {
      if (response.status !== 401) return undefined;
      const challenge = response.headers.get("www-authenticate");
      challenges.push(challenge);
      return challenge?.startsWith("Bearer") === true ? { Authorization: `Bearer ${token}` } : undefined;
    },
    async onSuccessfulRetry(headers) {
      known = { ...headers };
    },
  };
}

describe.each(["JSONRPC", "HTTP+JSON"])("the libraries' own way to log in when asked, over %s", (binding) => {
  it(`works with ${SDK_V1}`, async () => {
    const authentication = handler(await issuer.token("alice"));
    const fetchImpl = createAuthenticatingFetchWithRetry(fetch, authentication);
    const factory = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
      preferredTransports: [binding],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    });
    const client = await factory.createFromUrl(server.url);
    const page = { tenant: "", contextId: "", status: 0, pageSize: 1, pageToken: "", statusTimestampAfter: undefined };
    for (let time = 0; time < 2; time++) expect(await client.listTasks(page)).toHaveProperty("tasks");
    expect(authentication.challenges).toEqual([expect.stringMatching(/^Bearer /)]);
  });

  it(`works with ${SDK_V03}`, async () => {
    const authentication = handler(await issuer.token("alice"));
    const fetchImpl = createV03AuthenticatingFetch(fetch, authentication);
    const factory = new V03ClientFactory({
      transports: [new V03JsonRpcTransportFactory({ fetchImpl }), new V03RestTransportFactory({ fetchImpl })],
      preferredTransports: [binding],
    });
    const client = await factory.createFromAgentCard(await V03CardResolver.default.resolve(server.url));
    const message = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "hi" }] } as const;
    for (let time = 0; time < 2; time++) {
      expect(await client.sendMessage({ message: { ...message, parts: [...message.parts] } })).toMatchObject({
        kind: "task",
      });
    }
    expect(authentication.challenges).toEqual([expect.stringMatching(/^Bearer /)]);
  });
});

it(`${SDK_V1} and ${SDK_V03} read from our card where keys and tokens go`, async () => {
  const { securitySchemes } = await new DefaultAgentCardResolver().resolve(server.url);
  const schemes = Object.values(securitySchemes).map(({ scheme }) => scheme);
  expect(schemes).toContainEqual({
    $case: "apiKeySecurityScheme",
    value: expect.objectContaining({ location: "header", name: "X-Interop-Key" }),
  });
  expect(schemes).toContainEqual({
    $case: "openIdConnectSecurityScheme",
    value: expect.objectContaining({ openIdConnectUrl: `${issuer.url}/.well-known/openid-configuration` }),
  });
  const old = await V03CardResolver.default.resolve(server.url);
  expect(Object.values(old.securitySchemes ?? {})).toContainEqual(
    expect.objectContaining({ type: "apiKey", in: "header", name: "X-Interop-Key" }),
  );
  expect(old.security?.length).toBeGreaterThan(0);
});
