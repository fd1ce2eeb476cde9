import { expect, it } from "vitest";
import { describeStores } from "../support/scene.ts";
import { userMessage } from "../support/wire-client.ts";

describeStores("every operation", {}, (scene, binding) => {
  it("[VER-SERVER-001, DM-TASK-001, DM-ART-001, JSONRPC-FMT-002, HTTP_JSON-SVC-001] SendMessage answers with the task it led to", async () => {
    const answer = await scene.client().call("SendMessage", { message: userMessage("artifact ok") });
    expect(answer.status).toBe(200);
    expect(answer.headers["content-type"]).toBe(binding.http?.mediaType ?? "application/grpc+proto");
    expect(answer.result).toMatchObject({
      task: {
        id: expect.any(String),
        contextId: expect.any(String),
        status: { state: "TASK_STATE_COMPLETED", timestamp: expect.any(String) },
        artifacts: [{ artifactId: "output", parts: [{ text: "ok" }] }],
      },
    });
  });

  it("[CORE-STREAM-001, CORE-STREAM-004] SendStreamingMessage answers with the events of the task", async () => {
    const stream = await scene.client().stream("work; artifact ok");
    const events = await stream.rest();
    expect(events.map(({ event }) => Object.keys(event).join())).toEqual([
      "task",
      "statusUpdate",
      "artifactUpdate",
      "statusUpdate",
    ]);
    const read = await scene.client().get(events[0]?.event.task?.id ?? "");
    expect(read.status).toEqual(events.at(-1)?.event.statusUpdate?.status);
    expect(read.artifacts).toEqual(events.flatMap(({ event }) => event.artifactUpdate?.artifact ?? []));
  });

  it("[CORE-GET-001] GetTask answers with the bare task", async () => {
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

  it("GetExtendedAgentCard needs no params", async () => {
    const { reason } = await scene.client().refusal("GetExtendedAgentCard");
    expect(reason).toBe("UNSUPPORTED_OPERATION");
  });
});
