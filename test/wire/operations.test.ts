import { expect, it } from "vitest";
import type { Method, Params } from "../support/bindings.ts";
import { describeStores } from "../support/scene.ts";
import { userMessage } from "../support/wire-client.ts";

describeStores("every operation", {}, (scene, binding) => {
  it("SendMessage answers with the task it led to", async () => {
    const answer = await scene.client().call("SendMessage", { message: userMessage("artifact ok") });
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe(binding.mediaType);
    expect(answer.result).toMatchObject({
      task: {
        id: expect.any(String),
        contextId: expect.any(String),
        status: { state: "TASK_STATE_COMPLETED", timestamp: expect.any(String) },
        artifacts: [{ artifactId: "output", parts: [{ text: "ok" }] }],
      },
    });
  });

  it("SendStreamingMessage answers with the events of the task", async () => {
    const stream = await scene.client().stream("work; artifact ok");
    const events = await stream.rest();
    expect(events.map(({ event }) => Object.keys(event).join())).toEqual([
      "task",
      "statusUpdate",
      "artifactUpdate",
      "statusUpdate",
    ]);
  });

  it("GetTask answers with the bare task", async () => {
    const task = await scene.client().task("artifact ok");
    const { status, result } = await scene.client().call("GetTask", { id: task.id });
    expect(status).toBe(200);
    expect(result).toEqual(task);
  });

  it("ListTasks answers with a page", async () => {
    const task = await scene.client().task("artifact ok");
    const { status, result } = await scene.client().call("ListTasks", { contextId: task.contextId });
    expect(status).toBe(200);
    const { artifacts: _, ...listed } = task;
    expect(result).toEqual({ tasks: [listed], nextPageToken: "", pageSize: 50, totalSize: 1 });
  });

  it("CancelTask answers with the bare task", async () => {
    const started = await scene.client().start("work; hold for-ever");
    const { status, result } = await scene.client().call("CancelTask", { id: started.id, metadata: { why: "test" } });
    expect(status).toBe(200);
    expect(result).toMatchObject({ id: started.id, status: { state: "TASK_STATE_CANCELED" } });
  });

  it("SubscribeToTask answers with the task and what follows", async () => {
    const gate = `subscribe-${binding.name}`;
    const started = await scene.client().start(`work; hold ${gate}; artifact late`);
    await scene.stage.reached(gate);
    const stream = await scene.client().subscribe(started.id);
    expect(await stream.task()).toMatchObject({ id: started.id });
    scene.stage.open(gate);
    const rest = await stream.rest();
    expect(rest.at(-1)?.event.statusUpdate?.status.state).toBe("TASK_STATE_COMPLETED");
  });

  const pushOperations: readonly (readonly [Method, Params])[] = [
    ["CreateTaskPushNotificationConfig", { url: "https://hooks.example.com/" }],
    ["GetTaskPushNotificationConfig", { id: "config-1" }],
    ["ListTaskPushNotificationConfigs", {}],
    ["DeleteTaskPushNotificationConfig", { id: "config-1" }],
  ];

  it.each(pushOperations)("[68] %s says that there is no push, for known and unknown tasks", async (method, params) => {
    const { id } = await scene.client().task("artifact ok");
    for (const taskId of [id, "no-such-task"]) {
      const { reason } = await scene.client().refusal(method, { taskId, ...params });
      expect(reason).toBe("PUSH_NOTIFICATION_NOT_SUPPORTED");
    }
  });

  it("[68] a push config in a message is refused and nothing is run", async () => {
    const before = (await scene.client().list()).totalSize;
    const text = `artifact pushed-${binding.name}`;
    const configuration = { taskPushNotificationConfig: { url: "https://hooks.example.com/" } };
    const { reason } = await scene.client().refusal("SendMessage", { message: userMessage(text), configuration });
    expect(reason).toBe("PUSH_NOTIFICATION_NOT_SUPPORTED");
    expect(scene.stage.started).not.toContain(text);
    expect((await scene.client().list()).totalSize).toBe(before);
  });

  it("GetExtendedAgentCard needs no params", async () => {
    const { reason } = await scene.client().refusal("GetExtendedAgentCard");
    expect(reason).toBe("UNSUPPORTED_OPERATION");
  });
});
