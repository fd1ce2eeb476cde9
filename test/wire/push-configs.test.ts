import { expect, it } from "vitest";
import type { Method, Params } from "../support/bindings.ts";
import { sendRaw } from "../support/raw-http.ts";
import { describeStores } from "../support/scene.ts";
import { userMessage, type WireClient } from "../support/wire-client.ts";

interface WireConfig {
  readonly id: string;
  readonly taskId: string;
  readonly url: string;
}

const URL = "https://hooks.example.com/a2a?x=1";
const SECRETS = { token: "wire-token", authentication: { scheme: "Bearer", credentials: "wire-credentials" } };

/** The answer to a call that must succeed, in which no secret may stand. */
async function ask(client: WireClient, method: Method, params: Params, headers = {}): Promise<unknown> {
  const { result, text } = await client.call(method, params, headers);
  expect(result, text).not.toBeUndefined();
  expect(text).not.toMatch(/wire-(token|credentials)/);
  return result;
}

const create = async (client: WireClient, params: Params, headers = {}) =>
  (await ask(client, "CreateTaskPushNotificationConfig", params, headers)) as WireConfig;

const list = async (client: WireClient, params: Params, headers = {}) =>
  (await ask(client, "ListTaskPushNotificationConfigs", params, headers)) as {
    readonly configs: readonly WireConfig[];
    readonly nextPageToken?: string;
  };

const authenticate = ({ headers }: { readonly headers: Readonly<Record<string, string | undefined>> }) => ({
  owner: headers["x-owner"] ?? "alice",
  authenticated: true,
});

describeStores("push configs", { agents: { other: {} }, authenticate }, (scene, binding) => {
  it("[PUSH-CREATE-001, PUSH-GET-001] get an id, and are read back without what is secret", async () => {
    const { id: taskId } = await scene.client().task("artifact ok");
    const answer = await scene.client().call("CreateTaskPushNotificationConfig", { taskId, url: URL, ...SECRETS });
    expect(answer.status).toBe(binding.name === "HTTP+JSON" ? 201 : 200);
    const made = answer.result as WireConfig;
    expect(made).toEqual({ id: expect.any(String), taskId, url: URL, authentication: { scheme: "Bearer" } });
    expect(made.id).not.toBe("");
    expect(answer.text).not.toMatch(/wire-(token|credentials)/);
    expect(await ask(scene.client(), "GetTaskPushNotificationConfig", { taskId, id: made.id })).toEqual(made);
    expect((await list(scene.client(), { taskId })).configs).toEqual([made]);
  });

  it("[PUSH-CREATE-001] keep the id they come with, and the newest of an id counts", async () => {
    const { id: taskId } = await scene.client().task("artifact ok");
    await create(scene.client(), { taskId, id: "mine/1", url: "https://old.example.com" });
    const made = await create(scene.client(), { taskId, id: "mine/1", url: URL });
    expect(made).toEqual({ id: "mine/1", taskId, url: URL });
    expect((await list(scene.client(), { taskId })).configs).toEqual([made]);
  });

  it("[PUSH-INLINE-001] that come with a message are there", async () => {
    const configuration = { taskPushNotificationConfig: { url: URL, ...SECRETS } };
    const { id: taskId } = await scene.client().task("input more?", { configuration });
    const { configs } = await list(scene.client(), { taskId });
    expect(configs).toEqual([{ id: expect.any(String), taskId, url: URL, authentication: { scheme: "Bearer" } }]);

    const more = { configuration: { taskPushNotificationConfig: { id: "second", url: URL } } };
    await scene.client().task(userMessage("artifact ok", { taskId }), more);
    expect((await list(scene.client(), { taskId })).configs.map(({ id }) => id)).toEqual([configs[0]?.id, "second"]);

    const stream = await scene.client().stream("work; artifact ok", { configuration });
    const streamed = await stream.task();
    await stream.rest();
    expect((await list(scene.client(), { taskId: streamed.id })).configs).toHaveLength(1);
  });

  it("[PUSH-INLINE-001] leave nothing behind when the answer is a message", async () => {
    const before = (await scene.client().list()).totalSize;
    const configuration = { taskPushNotificationConfig: { url: URL } };
    const answer = await scene.client().call("SendMessage", { message: userMessage("reply hello"), configuration });
    expect(answer.result).toHaveProperty("message");
    expect((await scene.client().list()).totalSize).toBe(before);
  });

  it("[AUTH-SCOPE-003, PUSH-GET-002] of others do not exist", async () => {
    const { id: taskId } = await scene.client().task("artifact ok");
    await create(scene.client(), { taskId, id: "one", url: URL });
    const strangers: [WireClient, Params, Record<string, string>][] = [
      [scene.client(), {}, { "x-owner": "bob" }],
      [scene.client(), { tenant: "elsewhere" }, {}],
      [scene.client("other"), {}, {}],
    ];
    const operations: [Method, Params][] = [
      ["CreateTaskPushNotificationConfig", { id: "one", url: "https://evil.example.com" }],
      ["GetTaskPushNotificationConfig", { id: "one" }],
      ["ListTaskPushNotificationConfigs", {}],
      ["DeleteTaskPushNotificationConfig", { id: "one" }],
    ];
    for (const [client, place, headers] of strangers) {
      for (const [method, params] of operations) {
        const refused = await client.refusal(method, { ...place, taskId, ...params }, headers);
        const unknown = await client.refusal(method, { ...place, taskId: "none", ...params }, headers);
        expect(refused.reason).toBe("TASK_NOT_FOUND");
        expect([unknown.reason, unknown.code, unknown.message]).toEqual([
          refused.reason,
          refused.code,
          refused.message,
        ]);
      }
    }
    expect((await list(scene.client(), { taskId })).configs).toEqual([{ id: "one", taskId, url: URL }]);
  });

  it("[PUSH-DEL-001, PUSH-DEL-002] may be deleted twice, and are then not there", async () => {
    const { id: taskId } = await scene.client().task("artifact ok");
    const { id } = await create(scene.client(), { taskId, url: URL });
    for (const _ of [1, 2]) {
      const answer = await scene.client().call("DeleteTaskPushNotificationConfig", { taskId, id });
      expect([answer.status, answer.result]).toEqual([binding.name === "HTTP+JSON" ? 204 : 200, null]);
    }
    const missing = await scene.client().refusal("GetTaskPushNotificationConfig", { taskId, id });
    expect(missing.reason).toBe("TASK_NOT_FOUND");
    expect(missing.details[0]?.metadata).toEqual({ taskId, configId: id });
    const unknown = await scene.client().refusal("GetTaskPushNotificationConfig", { taskId: "none", id });
    expect([unknown.reason, unknown.message]).toEqual(["TASK_NOT_FOUND", "Task not found."]);
    expect((await list(scene.client(), { taskId })).configs).toEqual([]);
  });

  it("[PUSH-LIST-001] come in pages, in the order of creation", async () => {
    const { id: taskId } = await scene.client().task("artifact ok");
    for (const id of ["c", "a", "d", "b"]) await create(scene.client(), { taskId, id, url: URL });
    const met: string[] = [];
    let page = await list(scene.client(), { taskId, pageSize: 3 });
    expect(page.configs).toHaveLength(3);
    for (;;) {
      met.push(...page.configs.map(({ id }) => id));
      const pageToken = page.nextPageToken ?? "";
      if (pageToken === "") break;
      page = await list(scene.client(), { taskId, pageSize: 3, pageToken });
    }
    expect(met).toEqual(["c", "a", "d", "b"]);
  });

  it("must be for http or https, and there are so many for a task", async () => {
    const { id: taskId } = await scene.client().task("artifact ok");
    const bad = await scene.client().refusal("CreateTaskPushNotificationConfig", { taskId, url: "ftp://x.example" });
    expect(bad.reason).toBe("INVALID_PARAMS");
    const violations = bad.details.flatMap(({ fieldViolations = [] }) => fieldViolations);
    expect(violations.map(({ field }) => field)).toEqual(["url"]);
    for (let made = 0; made < 20; made++) await create(scene.client(), { taskId, url: URL });
    const full = await scene.client().refusal("CreateTaskPushNotificationConfig", { taskId, url: URL });
    expect(full.reason).toBe("RESOURCE_EXHAUSTED");
  });
});

describeStores("without push notifications", { push: false }, (scene, binding) => {
  const operations: readonly (readonly [Method, Params])[] = [
    ["CreateTaskPushNotificationConfig", { url: URL }],
    ["GetTaskPushNotificationConfig", { id: "config-1" }],
    ["ListTaskPushNotificationConfigs", {}],
    ["DeleteTaskPushNotificationConfig", { id: "config-1" }],
  ];

  it("[CORE-CAP-001] the card says so", async () => {
    const reply = await sendRaw(scene.server.url, { path: "/.well-known/agent-card.json" });
    expect(reply.json.capabilities).toMatchObject({ pushNotifications: false });
  });

  it.each(operations)(
    "[CORE-CAP-001] %s says that there is no push, for known and unknown tasks",
    async (method, params) => {
      const { id } = await scene.client().task("artifact ok");
      for (const taskId of [id, "no-such-task"]) {
        const { reason } = await scene.client().refusal(method, { taskId, ...params });
        expect(reason).toBe("PUSH_NOTIFICATION_NOT_SUPPORTED");
      }
    },
  );

  it("[CORE-CAP-001] a push config in a message is refused and nothing is run", async () => {
    const before = (await scene.client().list()).totalSize;
    const text = `artifact pushed-${binding.name}`;
    const configuration = { taskPushNotificationConfig: { url: URL } };
    const { reason } = await scene.client().refusal("SendMessage", { message: userMessage(text), configuration });
    expect(reason).toBe("PUSH_NOTIFICATION_NOT_SUPPORTED");
    expect(scene.stage.started).not.toContain(text);
    expect((await scene.client().list()).totalSize).toBe(before);
  });
});
