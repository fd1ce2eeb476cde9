import { describe, expect, it } from "vitest";
import { BINDINGS, type Binding } from "../support/bindings.ts";
import { sendRaw } from "../support/raw-http.ts";
import { describeBindings, useScene } from "../support/scene.ts";
import { userMessage, WireStream } from "../support/wire-client.ts";

const REPLAY = "urn:dragoman:ext:replay:v1";
const IDEMPOTENCY = "urn:dragoman:ext:idempotency:v1";
const REQUIRED = "https://example.com/ext/needed/v1";

describeBindings("versions", {}, (scene, binding) => {
  const { http } = binding;
  const withVersion = (headers: Record<string, string>) =>
    scene.client().call("SendMessage", { message: userMessage("artifact ok") }, headers);

  // Over gRPC, the package of the service is a version.
  if (http !== undefined) {
    it("[VER-SERVER-003] none at all is 1.0, where only that has the method or the path", async () => {
      const raw = http.request("SendMessage", { message: userMessage("artifact ok") });
      const { "a2a-version": _, ...headers } = raw.headers as Record<string, string>;
      const reply = await sendRaw(scene.server.url, { ...raw, headers });
      const { result } = http.read(reply.status, reply.headers, reply.text);
      const completed = { task: { status: { state: "TASK_STATE_COMPLETED" } } };
      expect(result).toMatchObject(completed);
      expect((await withVersion({ "a2a-version": "" })).result).toMatchObject(completed);
    });
  }

  it.each(["99.0", "0.9", "1", "1.1", "2.0", "one", "1.0 beta", "1.0,0.3"])(
    "[VER-SERVER-002] %s is refused as a version that is not spoken",
    async (version) => {
      const { error, status } = await withVersion({ "a2a-version": version });
      expect(error?.reason).toBe("VERSION_NOT_SUPPORTED");
      expect(error?.code).toBe({ "JSON-RPC": -32009, "HTTP+JSON": 400, gRPC: 9 }[binding.name]);
      expect(status).toBeLessThan(500);
    },
  );

  it("0.3 has no such method either", async () => {
    const { error } = await withVersion({ "a2a-version": "0.3" });
    expect(error?.reason).toBe(binding.name === "JSON-RPC" ? "METHOD_NOT_FOUND" : "VERSION_NOT_SUPPORTED");
  });

  it.each(["1.0", "1.0.0", "1.0.7", " 1.0 "])("[VER-CLIENT-002] %s is 1.0", async (version) => {
    expect((await withVersion({ "a2a-version": version })).error).toBeUndefined();
  });

  if (http !== undefined) {
    it("may be named in the query instead", async () => {
      const raw = http.request("ListTasks", {});
      const { "a2a-version": _, ...headers } = raw.headers as Record<string, string>;
      const ask = async (version: string) => {
        const path = `${raw.path ?? "/"}?A2A-Version=${version}`;
        const reply = await sendRaw(scene.server.url, { ...raw, headers, path });
        return http.read(reply.status, reply.headers, reply.text);
      };
      expect((await ask("1.0")).result).toMatchObject({ pageSize: 50 });
      expect((await ask("99.0")).error?.reason).toBe("VERSION_NOT_SUPPORTED");
    });
  }
});

describeBindings(
  "extensions",
  { agents: { strict: { extensions: [{ uri: REQUIRED, required: true }, { uri: "urn:example:optional" }] } } },
  (scene) => {
    const sendWith = (headers: Record<string, string>, agent?: string) =>
      scene.client(agent).call("SendMessage", { message: userMessage("artifact ok") }, headers);

    it("[SVC-PARAM-001, SVC-PARAM-002] are asked for in a list, by a header in any case, and those in use are named in the answer", async () => {
      const answer = await sendWith({ "A2A-EXTENSIONS": ` ${REPLAY} ,, ${IDEMPOTENCY}` });
      expect(answer.headers["a2a-extensions"]).toBe(`${REPLAY},${IDEMPOTENCY}`);
      const lower = await sendWith({ "a2a-extensions": IDEMPOTENCY, "A2a-VeRsIoN": "1.0" });
      expect(lower.headers["a2a-extensions"]).toBe(IDEMPOTENCY);
    });

    it("are named in the answer of a stream too", async () => {
      const stream = await scene.client().stream("artifact ok", {}, { "a2a-extensions": REPLAY });
      expect(stream.headers["a2a-extensions"]).toBe(REPLAY);
      await stream.rest();
    });

    it("[CORE-CAP-004] that are required must be asked for, by every operation", async () => {
      const client = scene.client("strict");
      const message = userMessage("artifact ok");
      for (const [method, params] of [
        ["SendMessage", { message }],
        ["GetTask", { id: "x" }],
        ["ListTasks", {}],
        ["CancelTask", { id: "x" }],
      ] as const) {
        const { reason } = await client.refusal(method, params, { "a2a-extensions": "urn:example:optional" });
        expect(reason, method).toBe("EXTENSION_SUPPORT_REQUIRED");
      }
      for (const method of ["SendStreamingMessage", "SubscribeToTask"] as const) {
        const refused = await client.tryOpen(method, { message, id: "x" });
        if (refused instanceof WireStream) throw new Error(`${method} was not refused.`);
        expect(refused.reason).toBe("EXTENSION_SUPPORT_REQUIRED");
      }
      expect((await client.call("ListTasks", {}, { "a2a-extensions": REQUIRED })).result).toMatchObject({
        totalSize: 0,
      });
      const answer = await sendWith({ "a2a-extensions": `urn:example:other, ${REQUIRED}` }, "strict");
      expect(answer.error).toBeUndefined();
      expect(answer.headers["a2a-extensions"]).toBe(REQUIRED);
    });

    it("[SVC-PARAM-002, EXT-FALLBACK-001] that are unknown, or another version of a known one, are left out", async () => {
      const answer = await sendWith({ "a2a-extensions": "urn:example:unknown, urn:dragoman:ext:replay:v2" });
      expect(answer.error).toBeUndefined();
      expect(answer.headers["a2a-extensions"]).toBeUndefined();
      const other = await sendWith({ "a2a-extensions": REQUIRED.replace("v1", "v2") }, "strict");
      expect(other.error?.reason).toBe("EXTENSION_SUPPORT_REQUIRED");
    });
  },
);

describeBindings("tenants", { agents: { other: {} } }, (scene, binding) => {
  it("[TENANT-001] do not see each other's tasks", async () => {
    const client = scene.client();
    const mine = await client.task("artifact mine", { tenant: "blue" });
    const { id, contextId } = mine;
    expect(await client.get(id, { tenant: "blue" })).toEqual(mine);
    expect((await client.list({ tenant: "blue", contextId })).totalSize).toBe(1);
    for (const tenant of ["green", undefined]) {
      const partition = tenant === undefined ? {} : { tenant };
      expect((await client.list({ ...partition, contextId })).totalSize).toBe(0);
      expect((await client.refusal("GetTask", { ...partition, id })).reason).toBe("TASK_NOT_FOUND");
      expect((await client.refusal("CancelTask", { ...partition, id })).reason).toBe("TASK_NOT_FOUND");
      const message = userMessage("artifact more", { taskId: id });
      expect((await client.refusal("SendMessage", { ...partition, message })).reason).toBe("TASK_NOT_FOUND");
      const refused = await client.tryOpen("SubscribeToTask", { ...partition, id });
      expect(refused).toMatchObject({ reason: "TASK_NOT_FOUND" });
    }
  });

  it("that are the name of an agent choose it, at the root and at the agent itself", async () => {
    const made = await scene.client().task("artifact there", { tenant: "other" });
    expect(await scene.client("other").get(made.id)).toEqual(made);
    expect(await scene.client("other").get(made.id, { tenant: "other" })).toEqual(made);
    expect((await scene.client().refusal("GetTask", { id: made.id })).reason).toBe("TASK_NOT_FOUND");
  });

  if (binding.can.agentAndTenant) {
    it("below one agent never reach another", async () => {
      const made = await scene.client("stage").task("artifact here");
      const { reason } = await scene.client("other").refusal("GetTask", { id: made.id, tenant: "stage" });
      expect(reason).toBe("TASK_NOT_FOUND");
    });
  }

  it("with odd names are partitions like any other", async () => {
    for (const tenant of ["a b", "ü/ö", "__proto__", "constructor", "100%"]) {
      const made = await scene.client().task("artifact odd", { tenant });
      expect((await scene.client().get(made.id, { tenant })).id, tenant).toBe(made.id);
      expect((await scene.client().refusal("GetTask", { id: made.id })).reason).toBe("TASK_NOT_FOUND");
    }
  });

  if (binding.name === "HTTP+JSON") {
    it("may be in the path, the query and the body, but must not contradict", async () => {
      const send = (path: string, body: object) =>
        sendRaw(`${scene.server.url}/rest`, {
          path,
          headers: { "a2a-version": "1.0", "content-type": "application/a2a+json" },
          body: JSON.stringify({ message: userMessage("artifact ok"), ...body }),
        });
      expect((await send("/red/message:send", { tenant: "red" })).status).toBe(200);
      expect((await send("/message:send?tenant=red", {})).status).toBe(200);
      expect((await send("/message:send", { tenant: "red" })).status).toBe(200);
      expect((await send("/red/message:send", { tenant: "blue" })).status).toBe(400);
      expect((await scene.client().list({ tenant: "red" })).totalSize).toBe(3);
    });
  }
});

describe("names in snake_case", () => {
  const scene = useScene(BINDINGS[0] as Binding, { agents: { asking: {} } });

  it("are understood on JSON-RPC, and answered in camelCase", async () => {
    const client = scene.client();
    const { result } = await client.call("SendMessage", {
      message: {
        message_id: "m-1",
        context_id: "snake",
        role: "ROLE_USER",
        parts: [{ text: "input more?", media_type: "text/plain" }],
      },
      configuration: { history_length: 0, accepted_output_modes: ["text/plain"] },
    });
    const { task } = result as { task: { id: string; contextId: string; history?: unknown } };
    expect(task).toMatchObject({ contextId: "snake" });
    expect(task.history).toBeUndefined();
    const follow = { message_id: "m-2", task_id: task.id, role: "ROLE_USER", parts: [{ text: "artifact ok" }] };
    expect((await client.call("SendMessage", { message: follow })).result).toMatchObject({ task: { id: task.id } });
    const page = await client.call("ListTasks", { context_id: "snake", page_size: 1, include_artifacts: true });
    expect(page.result).toMatchObject({ pageSize: 1, tasks: [{ artifacts: [{ artifactId: "output" }] }] });
    expect(page.text).not.toMatch(/"\w+_\w+":/);
    expect((await client.get(task.id, { history_length: 1 })).history).toHaveLength(1);
  });

  it("are understood in bodies and queries of HTTP+JSON", async () => {
    const headers = { "a2a-version": "1.0", "content-type": "application/json" };
    const message = {
      message_id: "m-1",
      context_id: "rest-snake",
      role: "ROLE_USER",
      parts: [{ text: "artifact ok" }],
    };
    const base = `${scene.server.url}/rest`;
    const sent = await sendRaw(base, { path: "/message:send", headers, body: JSON.stringify({ message }) });
    expect(sent.status).toBe(200);
    const listed = await sendRaw(base, {
      path: "/tasks?context_id=rest-snake&page_size=1&include_artifacts=true",
      headers,
    });
    expect(listed.json).toMatchObject({
      pageSize: 1,
      totalSize: 1,
      tasks: [{ artifacts: [{}] }],
    });
  });
});
