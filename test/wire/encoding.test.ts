import { expect, it } from "vitest";
import type { Params } from "../support/bindings.ts";
import { sendRaw } from "../support/raw-http.ts";
import { describeHttpBindings, describeStores } from "../support/scene.ts";
import { userMessage } from "../support/wire-client.ts";
import type { WirePart } from "../support/wire-types.ts";

const ANY_CONTENT = { inputModes: ["*/*"] };

describeStores("encoding", { agents: { any: ANY_CONTENT } }, (scene, binding) => {
  it("[DM-SERIAL-002, DM-SERIAL-006, DM-SERIAL-001, DM-MSG-001] uses full names for enums and no discriminators", async () => {
    const client = scene.client();
    const stream = await client.stream("work busy; artifact ok; input more?");
    const frames = await stream.rest();
    const { id } = frames[0]?.event.task ?? { id: "" };
    const texts = [...frames.map(({ event }) => JSON.stringify(event)), JSON.stringify(await client.get(id))];
    texts.push((await client.call("ListTasks", { includeArtifacts: true })).text);
    for (const text of texts) {
      expect(text).not.toMatch(/"(?:kind|type|final)":/);
      for (const [, state] of text.matchAll(/"state":"([^"]*)"/g)) expect(state).toMatch(/^TASK_STATE_[A-Z_]+$/);
      for (const [, role] of text.matchAll(/"role":"([^"]*)"/g)) expect(role).toMatch(/^ROLE_(?:USER|AGENT)$/);
    }
    expect(texts.join()).toContain('"role":"ROLE_AGENT"');
  });

  it("understands the numbers of enums", async () => {
    const task = await scene.client().task(userMessage("artifact ok", { role: 1 }));
    expect(task.history?.[0]?.role).toBe("ROLE_USER");
    const page = await scene.client().list({ contextId: task.contextId, status: 3 });
    expect(page.totalSize).toBe(1);
  });

  it("[DM-PART-001, DM-PART-002] keeps every kind of part, also when it is empty", async () => {
    const parts: WirePart[] = [
      { text: "mirror" },
      { text: "" },
      { data: null },
      { data: [1, "two", { three: false }] },
      { data: 0 },
      { data: false },
      { data: "" },
      { data: {} },
      { raw: "" },
      { url: "https://example.com/file.txt", filename: "file.txt", mediaType: "text/plain", metadata: { a: [1] } },
      { text: '\u2028 line \u0000 \ud83d\ude00 "quoted" </script>\r\n' },
    ];
    const task = await scene.client("any").task(userMessage(parts));
    expect(task.artifacts?.[0]?.parts).toEqual(parts);
    expect(task.history?.[0]?.parts).toEqual(parts);
    expect((await scene.client("any").get(task.id)).artifacts?.[0]?.parts).toEqual(parts);
  });

  it("returns long texts of any characters whole", async () => {
    const parts = [{ text: "mirror" }, { text: "a — \ud83d\ude00 ".repeat(20_000) }];
    const task = await scene.client("any").task(userMessage(parts));
    expect(task.artifacts?.[0]?.parts).toEqual(parts);
  });

  it.each([
    ["two kinds of content", { text: "a", data: 1 }],
    ["no content", { mediaType: "text/plain" }],
    ["no members", {}],
  ])("[DM-PART-001, DM-PART-002] refuses a part with %s", async (_, part) => {
    const { reason } = await scene.client("any").refusal("SendMessage", { message: userMessage([part]) });
    expect(reason).toBe("INVALID_PARAMS");
  });

  it("[DM-SERIAL-003] writes timestamps in UTC", async () => {
    const before = Date.now();
    const task = await scene.client().task("artifact ok");
    expect(task.status.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(Date.parse(task.status.timestamp)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(task.status.timestamp)).toBeLessThanOrEqual(Date.now());
  });

  it("[DM-BYTES-001] gives bytes back as they were, in standard base64", async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, at) => 255 - at));
    const standard = bytes.toString("base64");
    const spellings = [standard, standard.replaceAll("=", ""), bytes.toString("base64url")];
    const parts = [{ text: "mirror" }, ...spellings.map((raw) => ({ raw, mediaType: "application/octet-stream" }))];
    const task = await scene.client("any").task(userMessage(parts));
    const returned = task.artifacts?.[0]?.parts.slice(1).map(({ raw }) => raw);
    expect(returned).toEqual([standard, standard, standard]);
  });

  if (binding.can.anyJson) {
    it("refuses what is no base64", async () => {
      for (const raw of ["a", "????", "aGk=aGk=", 17]) {
        const message = userMessage([{ raw } as WirePart]);
        expect((await scene.client("any").refusal("SendMessage", { message })).reason).toBe("INVALID_PARAMS");
      }
    });
  }

  it("[DM-SERIAL-005] ignores members it does not know", async () => {
    const message = userMessage([{ text: "mirror", novelty: 1 } as WirePart], { surprise: { deep: [1] } });
    const task = await scene.client().task(message, { unheardOf: true, configuration: { futuristic: "yes" } });
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(JSON.stringify(task)).not.toContain("novelty");
    expect((await scene.client().get(task.id, { shape: "round" })).id).toBe(task.id);
  });

  it("treats null like absence", async () => {
    const message = userMessage("artifact ok", { taskId: null, contextId: null, metadata: null });
    const task = await scene.client().task(message, { configuration: null, metadata: null });
    expect(task.contextId).not.toBe("");
  });

  const complete = { messageId: "m-1", role: "ROLE_USER", parts: [{ text: "artifact never" }] };
  const misfits: [string, Params][] = [
    ["a message that is text", { message: "hello" }],
    ["parts that are no list", { message: { ...complete, parts: { text: "x" } } }],
    ["a part that is text", { message: { ...complete, parts: ["x"] } }],
    ["metadata that is a list", { message: complete, metadata: [] }],
  ];
  it.each<[string, Params]>([
    ...(binding.can.anyJson ? misfits : []),
    ["no message", {}],
    ["a null message", { message: null }],
    ["no messageId", { message: { ...complete, messageId: undefined } }],
    ["an empty messageId", { message: { ...complete, messageId: "" } }],
    ["no role", { message: { ...complete, role: undefined } }],
    ["an unspecified role", { message: { ...complete, role: "ROLE_UNSPECIFIED" } }],
    ["an unknown role", { message: { ...complete, role: "user" } }],
    ["no parts", { message: { ...complete, parts: undefined } }],
    ["a negative historyLength", { message: complete, configuration: { historyLength: -1 } }],
  ])("[CORE-ERR-002] refuses %s before any work starts", async (_, params) => {
    const before = (await scene.client().list()).totalSize;
    const { reason, details } = await scene.client().refusal("SendMessage", params);
    expect(reason).toBe("INVALID_PARAMS");
    const fields = details.flatMap(({ fieldViolations = [] }) => fieldViolations.map(({ field }) => field));
    expect(fields.length).toBeGreaterThan(0);
    expect(await scene.client().tryOpen("SendStreamingMessage", params)).toMatchObject({ reason: "INVALID_PARAMS" });
    expect((await scene.client().list()).totalSize).toBe(before);
    expect(scene.stage.started).not.toContain("artifact never");
  });

  it("[DM-PARTS-001] refuses a message without parts", async () => {
    const refused = await scene.client().refusal("SendMessage", { message: userMessage([]) });
    expect(refused.reason).toBe("INVALID_PARAMS");
    expect(refused.details.flatMap(({ fieldViolations = [] }) => fieldViolations)).toEqual([
      { field: "message.parts", description: expect.any(String) },
    ]);
  });

  it("passes metadata of messages on, whatever its keys are", async () => {
    const metadata = { toString: 1, constructor: { prototype: {} }, "a.b": [null] };
    const task = await scene.client().task(userMessage("artifact ok", { metadata }));
    const stored = await scene.client().get(task.id);
    expect(JSON.stringify(stored.history?.[0])).toContain(JSON.stringify(metadata));
  });
});

describeHttpBindings("media types of requests", {}, (scene, binding) => {
  const sendAs = async (contentType: string) => {
    const raw = binding.http.request("SendMessage", { message: userMessage("artifact ok") });
    const headers = { ...raw.headers, "content-type": contentType };
    const reply = await sendRaw(scene.server.url, { ...raw, headers });
    return binding.http.read(reply.status, reply.headers, reply.text);
  };

  it.each(["application/json", "application/a2a+json", "Application/JSON; charset=utf-8"])(
    "%s is taken",
    async (type) => {
      expect((await sendAs(type)).error).toBeUndefined();
    },
  );

  it.each(["text/plain", "application/xml", "multipart/form-data; boundary=x"])("%s is not", async (type) => {
    const { error } = await sendAs(type);
    expect(error?.reason).toBe("CONTENT_TYPE_NOT_SUPPORTED");
    expect(error?.code).toBe(binding.name === "JSON-RPC" ? -32005 : 400);
  });
});
