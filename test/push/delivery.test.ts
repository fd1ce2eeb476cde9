import { createHash, createHmac, generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DragomanServer, type ServeOptions, serve } from "../../src/index.ts";
import { createFolder } from "../support/lifecycle.ts";
import { Stage } from "../support/stage.ts";
import { STORES } from "../support/store-specs.ts";
import { type Arrival, Receiver } from "./receiver.ts";

const SECRET = "a secret that both sides know";
const COMPLETED = "work; artifact done";

const receiver = await Receiver.start();
const folder = createFolder();

let paths = 0;
const newPath = () => `/hook-${++paths}?key=planted-query`;

async function rpc(server: DragomanServer, version: string | undefined, method: string, params: object) {
  const response = await fetch(server.url, {
    method: "POST",
    headers: { "content-type": "application/json", ...(version === undefined ? {} : { "a2a-version": version }) },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = (await response.json()) as { result?: unknown; error?: unknown };
  expect(error).toBeUndefined();
  return result as Record<string, unknown>;
}

function send(server: DragomanServer, text: string, config: object) {
  const message = { messageId: `m-${++paths}`, role: "ROLE_USER", parts: [{ text }] };
  const configuration = { taskPushNotificationConfig: config };
  return rpc(server, "1.0", "SendMessage", { message, configuration });
}

const bodies = (arrivals: readonly Arrival[]) =>
  arrivals.map(({ body }) => JSON.parse(body) as Record<string, unknown>);

describe.each(STORES)("push notifications on $name", (spec) => {
  const { store, remove } = spec.create();
  const stage = new Stage();
  let server: DragomanServer;
  beforeAll(async () => {
    const push = { allowPrivateTargets: true, retryMs: 20, timeoutMs: 2_000, attempts: 4 };
    server = await serve({ port: 0, grpcPort: 0, log: false, store, agents: { stage: stage.agent() }, push });
  });
  afterAll(async () => {
    await server.close();
    remove();
  });

  it("[PUSH-DELIVER-001, PUSH-DELIVER-003, PUSH-DELIVER-004] of 1.0 are one stream response for each event, with all that the receiver wants to see", async () => {
    const path = newPath();
    const authentication = { scheme: "Bearer", credentials: "theirs" };
    const { task } = (await send(server, COMPLETED, { url: receiver.url(path), token: "sesame", authentication })) as {
      task: { id: string };
    };
    const arrivals = await receiver.takenAt(path, 4);
    expect(arrivals.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    for (const { method, headers } of arrivals) {
      expect(method).toBe("POST");
      expect(headers["content-type"]).toBe("application/a2a+json");
      expect(headers["x-a2a-notification-token"]).toBe("sesame");
      expect(headers["a2a-notification-token"]).toBe("sesame");
      expect(headers.authorization).toBe("Bearer theirs");
    }
    expect(bodies(arrivals)).toMatchObject([
      { task: { id: task.id, status: { state: "TASK_STATE_SUBMITTED" } } },
      { statusUpdate: { taskId: task.id, status: { state: "TASK_STATE_WORKING" } } },
      { artifactUpdate: { taskId: task.id, artifact: { parts: [{ text: "done" }] } } },
      { statusUpdate: { taskId: task.id, status: { state: "TASK_STATE_COMPLETED" } } },
    ]);
  });

  it("carry nothing that was not asked for", async () => {
    const path = newPath();
    await send(server, COMPLETED, { url: receiver.url(path) });
    for (const { headers } of await receiver.takenAt(path, 4)) {
      expect(Object.keys(headers).filter((name) => /token|authorization|signature|jwt/.test(name))).toEqual([]);
    }
  });

  it("[PUSH-DELIVER-003, PUSH-DELIVER-004] of 0.3 are the whole task each time", async () => {
    const path = newPath();
    const message = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: COMPLETED }] };
    const pushNotificationConfig = {
      url: receiver.url(path),
      token: "sesame",
      authentication: { schemes: ["Basic"], credentials: "b64" },
    };
    const task = await rpc(server, undefined, "message/send", { message, configuration: { pushNotificationConfig } });
    const ended = () => receiver.taken.some((arrival) => arrival.path === path && arrival.number === 4);
    await receiver.until(ended);
    const arrivals = await receiver.takenAt(path, 1);
    for (const { headers } of arrivals) {
      expect(headers["content-type"]).toBe("application/json");
      expect(headers["x-a2a-notification-token"]).toBe("sesame");
      expect(headers.authorization).toBe("Basic b64");
    }
    const all = bodies(arrivals);
    expect(all[0]).toMatchObject({ kind: "task", id: task.id });
    expect(all.at(-1)).toMatchObject({
      kind: "task",
      id: task.id,
      status: { state: "completed" },
      artifacts: [{ parts: [{ kind: "text", text: "done" }] }],
      history: [{ kind: "message", role: "user" }],
    });
  });

  it("of 0.1 are the task as it is there", async () => {
    const path = newPath();
    const message = { role: "user", parts: [{ type: "text", text: COMPLETED }] };
    const id = `mine-${path}`;
    await rpc(server, undefined, "tasks/send", { id, message, pushNotification: { url: receiver.url(path) } });
    await receiver.until(() => receiver.taken.some((arrival) => arrival.path === path && arrival.number === 4));
    const arrivals = await receiver.takenAt(path, 1);
    expect(arrivals.at(-1)?.headers["content-type"]).toBe("application/json");
    expect(bodies(arrivals).at(-1)).toMatchObject({
      id,
      status: { state: "completed" },
      artifacts: [{ index: 0, parts: [{ type: "text", text: "done" }] }],
    });
  });

  it("are in the words of the dialect they were registered in, whatever the task was made over", async () => {
    const [early, late] = [newPath(), newPath()];
    const { task } = (await send(server, "input more?", { url: receiver.url(early) })) as { task: { id: string } };
    const pushNotificationConfig = { url: receiver.url(late) };
    await rpc(server, "0.3", "tasks/pushNotificationConfig/set", { taskId: task.id, pushNotificationConfig });
    const message = { messageId: `m-${++paths}`, role: "ROLE_USER", taskId: task.id, parts: [{ text: "work" }] };
    await rpc(server, "1.0", "SendMessage", { message });
    const ended = ({ body }: Arrival) => /completed/i.test(body);
    for (const path of [early, late]) {
      await receiver.until(() => receiver.taken.some((arrival) => arrival.path === path && ended(arrival)));
    }
    expect(bodies(await receiver.takenAt(early, 1)).at(-1)).toHaveProperty("statusUpdate");
    expect(bodies(await receiver.takenAt(late, 1)).at(-1)).toMatchObject({
      kind: "task",
      status: { state: "completed" },
    });
    // What came before it was registered is not told.
    expect((await receiver.takenAt(late, 1))[0]?.number).toBeGreaterThan(2);
  });

  it("[PUSH-DELIVER-002] are repeated until they are taken, and stay in order", async () => {
    const path = newPath();
    const replies = [500, "cut", 204, 429, 302, "silence", 204] as const;
    let asked = 0;
    receiver.reply = (arrival) => {
      if (arrival.path !== path) return 204;
      const reply = replies[asked++] ?? 204;
      return reply === 302 ? { status: 302, headers: { location: receiver.url("/elsewhere") } } : reply;
    };
    await send(server, COMPLETED, { url: receiver.url(path) });
    expect((await receiver.takenAt(path, 4)).map(({ number }) => number)).toEqual([1, 2, 3, 4]);
    const tries = receiver.arrivals.filter((arrival) => arrival.path === path).map(({ number }) => number);
    expect(tries).toEqual([1, 1, 1, 2, 2, 2, 2, 3, 4]);
    expect(receiver.arrivals.filter((arrival) => arrival.path === "/elsewhere")).toEqual([]);
    receiver.reply = () => 204;
  });

  it("are given up in the end, and counted", async () => {
    const path = newPath();
    receiver.reply = (arrival) => (arrival.path === path ? 500 : 204);
    await send(server, COMPLETED, { url: receiver.url(path) });
    await receiver.until(() => receiver.arrivals.filter((arrival) => arrival.path === path).length >= 4);
    // The next notification to anybody else comes after the mark.
    const other = newPath();
    await send(server, COMPLETED, { url: receiver.url(other) });
    await receiver.takenAt(other, 4);
    receiver.reply = () => 204;
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toMatch(/^dragoman_push_dead_total 1$/m);
    expect(Number(/^dragoman_push_delivered_total (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThan(8);
    expect(receiver.arrivals.filter((arrival) => arrival.path === path)).toHaveLength(4);
  });

  it("stop when the config is deleted", async () => {
    const path = newPath();
    const { task } = (await send(server, "input more?", { id: "mine", url: receiver.url(path) })) as {
      task: { id: string };
    };
    await receiver.takenAt(path, 2);
    await rpc(server, "1.0", "DeleteTaskPushNotificationConfig", { taskId: task.id, id: "mine" });
    const message = { messageId: `m-${++paths}`, role: "ROLE_USER", taskId: task.id, parts: [{ text: "work" }] };
    await rpc(server, "1.0", "SendMessage", { message });
    const other = newPath();
    await send(server, COMPLETED, { url: receiver.url(other) });
    await receiver.takenAt(other, 4);
    expect(await receiver.takenAt(path, 2)).toHaveLength(2);
  });

  it("are refused as configs whose secrets no header can carry", async () => {
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "work" }] };
    for (const more of [
      { token: "a\r\nx-injected: 1" },
      { token: "ü" },
      { authentication: { scheme: "Bearer", credentials: "a\nb" } },
    ]) {
      const configuration = { taskPushNotificationConfig: { url: receiver.url("/never"), ...more } };
      const response = await fetch(server.url, {
        method: "POST",
        headers: { "content-type": "application/json", "a2a-version": "1.0" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message, configuration } }),
      });
      expect(await response.json()).toMatchObject({ error: { code: -32602 } });
    }
  });
});

describe("signed push notifications", () => {
  const keys = {
    ES256: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey,
    EdDSA: generateKeyPairSync("ed25519").privateKey,
    RS256: generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey,
  };

  const fileOf = async (alg: keyof typeof keys) => {
    const file = join(folder, `${alg}.pem`);
    await writeFile(file, keys[alg].export({ type: "pkcs8", format: "pem" }));
    return file;
  };

  it.each(["ES256", "EdDSA", "RS256"] as const)("can be verified with what is published: %s", async (alg) => {
    const keyFile = await fileOf(alg);
    const server = await serve({
      port: 0,
      grpcPort: false,
      log: false,
      agents: { stage: new Stage().agent() },
      push: { allowPrivateTargets: true, hmac: { secret: SECRET }, jwt: { keyFile, kid: "k1", alg } },
    });
    try {
      const [path, own] = [newPath(), newPath()];
      const { task } = (await send(server, COMPLETED, { url: receiver.url(path) })) as { task: { id: string } };
      const authentication = { scheme: "Bearer", credentials: "theirs" };
      await send(server, COMPLETED, { url: receiver.url(own), authentication });
      const published = (await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as JSONWebKeySet;
      expect(published.keys).toMatchObject([{ kid: "k1", alg, use: "sig" }]);
      expect(JSON.stringify(published)).not.toMatch(/"(d|p|q)":/);
      const ids = new Set<unknown>();
      for (const { headers, body } of await receiver.takenAt(path, 4)) {
        const [, time = "", digest] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers["x-dragoman-signature"])) ?? [];
        expect(digest).toBe(
          createHmac("sha256", SECRET)
            .update(`${time}.${receiver.url(path)}.${body}`)
            .digest("hex"),
        );
        expect(Math.abs(Date.now() / 1_000 - Number(time))).toBeLessThan(60);
        expect(headers.authorization).toBe(`Bearer ${headers["x-dragoman-jwt"]}`);
        const { payload } = await jwtVerify(String(headers["x-dragoman-jwt"]), createLocalJWKSet(published), {
          issuer: server.url,
          audience: new URL(receiver.url("/")).origin,
        });
        expect(payload).toMatchObject({
          taskId: task.id,
          request_body_sha256: createHash("sha256").update(body).digest("hex"),
        });
        ids.add(payload.jti);
      }
      expect(ids.size).toBe(4);
      for (const { headers } of await receiver.takenAt(own, 4)) {
        expect(headers.authorization).toBe("Bearer theirs");
        expect(headers["x-dragoman-jwt"]).toBeDefined();
      }
    } finally {
      await server.close();
    }
  });

  it("need a key that is one", async () => {
    const agents = { stage: new Stage().agent() };
    const keyFile = await fileOf("ES256");
    const start = (jwt: object, more: Partial<ServeOptions> = {}) =>
      serve({ port: 0, grpcPort: false, log: false, agents, push: { jwt: { keyFile, kid: "k", ...jwt } }, ...more });
    const noKey = join(folder, "none.pem");
    await writeFile(noKey, "nothing");
    await expect(start({ keyFile: noKey })).rejects.toThrow("holds no private key that can be read");
    await expect(start({ keyFile: join(folder, "absent.pem") })).rejects.toThrow("could not be read (ENOENT)");
    await expect(start({ alg: "RS256" })).rejects.toThrow("is made for ES256, not for RS256");
    const signing = { keyFile: await fileOf("EdDSA"), kid: "k" };
    await expect(start({}, { signing })).rejects.toThrow('Two different keys are called "k"');
  });

  it("are published with the key of cards in one set, once if it is the same key", async () => {
    const agents = { stage: new Stage().agent() };
    const [signing, other] = [
      { keyFile: await fileOf("ES256"), kid: "cards" },
      { keyFile: await fileOf("EdDSA"), kid: "push" },
    ];
    const published: unknown[] = [];
    for (const jwt of [other, signing]) {
      const server = await serve({ port: 0, grpcPort: false, log: false, agents, signing, push: { jwt } });
      const response = await fetch(`${server.url}/.well-known/jwks.json`);
      published.push(((await response.json()) as JSONWebKeySet).keys.map(({ kid, alg }) => [kid, alg]));
      await server.close();
    }
    expect(published).toEqual([
      [
        ["cards", "ES256"],
        ["push", "EdDSA"],
      ],
      [["cards", "ES256"]],
    ]);
  });
});
