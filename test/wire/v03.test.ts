import { describe, expect, it } from "vitest";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { EventStreamReader } from "../support/event-stream-reader.ts";
import { openRequest, sendRaw } from "../support/raw-http.ts";
import { useScene } from "../support/scene.ts";

describe("A2A 0.3", () => {
  const scene = useScene(BINDINGS[0] as Binding);
  const ask = async (method: string, params: unknown, headers: Record<string, string> = {}) => {
    const reply = await sendRaw(scene.server.url, {
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
    });
    return reply.json as { result?: unknown; error?: unknown };
  };
  const said = (text: string, more: object = {}) => ({
    message: { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text }], ...more },
  });
  const http = async (line: string, body?: unknown) => {
    const [method = "", path = ""] = line.split(" ");
    const reply = await sendRaw(scene.server.url, {
      method,
      path: `/rest/v1${path}`,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return {
      status: reply.status,
      body: reply.body.length === 0 ? undefined : reply.json,
    };
  };

  it("[CORE-SEND-001, V03-KIND-001] is used where no version is named, and 1.0 at the same URL where it is", async () => {
    const older = await ask("message/send", said("artifact ok"));
    expect(older).toMatchObject({ id: 1, result: { kind: "task", status: { state: "completed" } } });
    const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "artifact ok" }] };
    const newer = await ask("SendMessage", { message }, { "a2a-version": "1.0" });
    expect(newer).toMatchObject({ result: { task: { status: { state: "TASK_STATE_COMPLETED" } } } });
  });

  it("[DM-SERIAL-002, V03-FINAL-001] spells states and roles as each of its forms does", async () => {
    const begun = await ask("message/send", { ...said("work; hold spelled"), configuration: { blocking: false } });
    const { id } = begun.result as { id: string };
    expect(begun.result).toMatchObject({ kind: "task", history: [{ kind: "message", role: "user" }] });
    const cancelled = await ask("tasks/cancel", { id });
    expect(cancelled.result).toMatchObject({ status: { state: "canceled" } });
    // 1.0 answers with the task once more.
    expect((await ask("tasks/cancel", { id })).error).toMatchObject({ code: -32002 });
    expect((await http(`POST /tasks/${id}:cancel`, {})).status).toBe(409);
    const newer = await ask("CancelTask", { id }, { "a2a-version": "1.0" });
    expect(newer.result).toMatchObject({ status: { state: "TASK_STATE_CANCELED" } });
    expect(await http(`GET /tasks/${id}`)).toMatchObject({
      status: 200,
      body: { status: { state: "TASK_STATE_CANCELLED" }, history: [{ role: "ROLE_USER" }] },
    });
  });

  it.each(["GET", "POST"])("[V03-SUB-001, V03-PUSH-001] is subscribed to by %s", async (method) => {
    const gate = `subscribed by ${method}`;
    const begun = await ask("message/send", { ...said(`work; hold ${gate}`), configuration: { blocking: false } });
    const { id } = begun.result as { id: string };
    const open = await openRequest(scene.server.url, { method, path: `/rest/v1/tasks/${id}:subscribe` });
    expect(open.status).toBe(200);
    const events = new EventStreamReader(open);
    expect(JSON.parse((await events.next())?.data ?? "")).toMatchObject({ task: { id } });
    scene.stage.open(gate);
    const rest = await events.rest();
    expect(JSON.parse(rest.at(-1)?.data ?? "")).toMatchObject({
      statusUpdate: { status: { state: "TASK_STATE_COMPLETED" }, final: true },
    });
  });

  it("keeps a webhook given in either form, and shows no secret", async () => {
    const task = (await ask("message/send", said("artifact ok"))).result as { id: string };
    const config = { url: "https://hook.example/a", token: "secret" };
    const name = `tasks/${task.id}/pushNotificationConfigs/one`;
    const enveloped = { parent: `tasks/${task.id}`, configId: "one", config: { name, pushNotificationConfig: config } };
    expect(await http(`POST /tasks/${task.id}/pushNotificationConfigs`, enveloped)).toMatchObject({ status: 201 });
    const bare = { name: `tasks/${task.id}/pushNotificationConfigs/two`, pushNotificationConfig: config };
    expect(await http(`POST /tasks/${task.id}/pushNotificationConfigs`, bare)).toMatchObject({ status: 201 });
    const listed = await ask("tasks/pushNotificationConfig/list", { id: task.id });
    expect(listed.result).toMatchObject([
      { taskId: task.id, pushNotificationConfig: { id: "one", url: config.url } },
      { taskId: task.id, pushNotificationConfig: { id: "two", url: config.url } },
    ]);
    expect(JSON.stringify(listed)).not.toContain("secret");
    const first = await ask("tasks/pushNotificationConfig/get", { id: task.id });
    expect(first.result).toMatchObject({ pushNotificationConfig: { id: "one" } });
    const gone = { id: task.id, pushNotificationConfigId: "one" };
    expect(await ask("tasks/pushNotificationConfig/delete", gone)).toMatchObject({ result: null });
    expect(await ask("tasks/pushNotificationConfig/get", gone)).toMatchObject({ error: { code: -32001 } });
  });

  it("shows callers that subscribe too late the task as it ended", async () => {
    const task = (await ask("message/send", said("artifact ok"))).result as { id: string };
    const open = await openRequest(scene.server.url, {
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tasks/resubscribe", params: { id: task.id } }),
    });
    const events = await new EventStreamReader(open).rest();
    expect(events.map(({ data }) => JSON.parse(data))).toMatchObject([
      { result: { kind: "task", id: task.id, status: { state: "completed" } } },
    ]);
  });
});
