/** What belongs to an owner besides tasks cannot be used by another: page tokens, idempotency keys, contexts, push configs. */
import { describe, expect, it } from "vitest";
import { BINDINGS, type Binding, HTTP_BINDINGS } from "../support/bindings.ts";
import { useScene } from "../support/scene.ts";
import { STORES } from "../support/store-specs.ts";
import { userMessage, WireClient } from "../support/wire-client.ts";

const ALICE = { "x-api-key": "alice-key" };
const BOB = { "x-api-key": "bob-key" };

describe.each(STORES)("what another owner has, on $name", (spec) => {
  const apiKeys = [
    { key: "alice-key", owner: "alice" },
    { key: "bob-key", owner: "bob" },
  ];
  const scene = useScene(HTTP_BINDINGS[0], { auth: { apiKeys } }, spec);
  const clientOf = (binding: Binding) => new WireClient(binding, scene.server.url);
  const send = async (binding: Binding, headers: Record<string, string>, text: string, more: object = {}) => {
    const params = { message: userMessage(text, { ...more }) };
    const { result } = await clientOf(binding).call("SendMessage", params, headers);
    return (result as { task: { id: string; contextId: string } }).task;
  };

  it.each(BINDINGS)("page tokens, over $name", async (binding) => {
    for (let at = 0; at < 3; at++) {
      await send(binding, ALICE, "work");
      await send(binding, BOB, "work");
    }
    const { result } = await clientOf(binding).call("ListTasks", { pageSize: 2 }, ALICE);
    const { nextPageToken } = result as { nextPageToken: string };
    expect(nextPageToken).not.toBe("");
    const question = { pageSize: 2, pageToken: nextPageToken };
    expect((await clientOf(binding).call("ListTasks", question, ALICE)).error).toBeUndefined();
    const borrowed = await clientOf(binding).call("ListTasks", question, BOB);
    const invented = await clientOf(binding).call("ListTasks", { ...question, pageToken: "AAAA" }, BOB);
    expect(borrowed.error).toMatchObject({ reason: "INVALID_PARAMS" });
    expect(borrowed.error).toEqual(invented.error);
  });

  it.each(BINDINGS)("idempotency keys, over $name", async (binding) => {
    const key = { "idempotency-key": `key-${binding.name}` };
    const hers = await send(binding, { ...ALICE, ...key }, "work");
    const again = await clientOf(binding).call(
      "SendMessage",
      { message: userMessage("other words") },
      { ...ALICE, ...key },
    );
    expect(again.error).toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
    // Neither her answer nor a conflict with it.
    const his = await send(binding, { ...BOB, ...key }, "other words");
    expect(his.id).not.toBe(hers.id);
  });

  it.each(BINDINGS)("contexts, over $name", async (binding) => {
    const hers = await send(binding, ALICE, "artifact secret words");
    const his = await send(binding, BOB, "input More?", { contextId: hers.contextId });
    const listed = async (headers: Record<string, string>) => {
      const { result } = await clientOf(binding).call("ListTasks", { contextId: hers.contextId }, headers);
      return (result as { tasks: { id: string }[] }).tasks.map(({ id }) => id);
    };
    expect(await listed(ALICE)).toEqual([hers.id]);
    expect(await listed(BOB)).toEqual([his.id]);
    const { text } = await clientOf(binding).call("GetTask", { id: his.id }, BOB);
    expect(text).not.toContain("secret words");
    const refers = { message: userMessage("input More?", { taskId: his.id, contextId: hers.contextId }) };
    expect((await clientOf(binding).call("SendMessage", refers, ALICE)).error).toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
  });

  it.each(BINDINGS)("push configs and their page tokens, over $name", async (binding) => {
    const client = clientOf(binding);
    const hers = await send(binding, ALICE, "input More?");
    const his = await send(binding, BOB, "input More?");
    const ids: string[] = [];
    for (const url of ["https://hook.example/a", "https://hook.example/b"]) {
      const { result } = await client.call("CreateTaskPushNotificationConfig", { taskId: hers.id, url }, ALICE);
      ids.push((result as { id: string }).id);
    }
    const [id] = ids;
    const page = await client.call("ListTaskPushNotificationConfigs", { taskId: hers.id, pageSize: 1 }, ALICE);
    const { nextPageToken: pageToken } = page.result as { nextPageToken: string };
    const question = { taskId: his.id, pageSize: 1, pageToken };
    expect((await client.call("ListTaskPushNotificationConfigs", question, BOB)).error).toMatchObject({
      reason: "INVALID_PARAMS",
    });
    for (const method of ["GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"] as const) {
      const answer = await client.call(method, { taskId: hers.id, id }, BOB);
      expect(answer.error, method).toMatchObject({ reason: "TASK_NOT_FOUND" });
    }
    // By the id of her config through a task of his own.
    expect((await client.call("GetTaskPushNotificationConfig", { taskId: his.id, id }, BOB)).error).toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
    expect((await client.call("GetTaskPushNotificationConfig", { taskId: hers.id, id }, ALICE)).error).toBeUndefined();
  });
});
