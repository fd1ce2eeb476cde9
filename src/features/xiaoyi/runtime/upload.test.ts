import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FakeClock } from "../../../core/engine/testing/fake-clock.ts";
import type { StreamEvent } from "../../../core/model/event.ts";
import type { Part } from "../../../core/model/message.ts";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import type { ExchangeCall } from "../../../core/wire/exchange.ts";
import { createPlatformUpload } from "../server/trusted-exchanger.ts";
import { createSimulator, type Simulator, seededRandom } from "../simulator/index.ts";
import { type BytesRequest, createFileUploads, createUploader, type OutgoingFile, UploadError } from "./upload.ts";

const FILE: OutgoingFile = { name: "报告.pdf", mediaType: "application/pdf", bytes: Buffer.from("%PDF-") };
const ACCOUNT = { uid: "the-uid", apiKey: "the-api-key" };
const PREPARED = {
  code: "0",
  desc: "success",
  objectId: "object",
  draftId: "draft",
  uploadInfos: [{ url: "https://storage.example/put?key=secret", method: "PUT", headers: { "x-token": 7 } }],
};

interface Script {
  readonly prepare?: unknown;
  readonly complete?: unknown;
  readonly status?: number;
  readonly sendStatus?: number;
}

function upload(script: Script = {}) {
  const calls: (ExchangeCall | (BytesRequest & { readonly url: string }))[] = [];
  const run = createUploader(ACCOUNT, "https://platform.example/", {
    ask: async (call) => {
      calls.push(call);
      const said = call.url.endsWith("prepare") ? (script.prepare ?? PREPARED) : (script.complete ?? { code: 0 });
      const text = typeof said === "string" ? said : JSON.stringify(said);
      return {
        status: script.status ?? 200,
        headers: new Headers(),
        text: async () => text,
        chunks: { async *[Symbol.asyncIterator]() {} },
        cancel() {},
      };
    },
    send: async (url, request) => {
      calls.push({ url, ...request });
      return { status: script.sendStatus ?? 200 };
    },
  });
  return { calls, result: run(FILE) };
}

describe("an upload", () => {
  it("is announced, sent where it is wanted, and completed", async () => {
    const { calls, result } = upload();
    expect(await result).toBe("object");
    const headers = { "x-uid": "the-uid", "x-api-key": "the-api-key", "x-request-from": "openclaw" };
    expect(calls).toMatchObject([
      { method: "POST", url: "https://platform.example/osms/v1/file/manager/prepare", headers },
      {
        method: "PUT",
        url: "https://storage.example/put?key=secret",
        headers: { "x-token": "7" },
        body: new Uint8Array(FILE.bytes),
      },
      {
        method: "POST",
        url: "https://platform.example/osms/v1/file/manager/complete",
        headers,
        body: '{"objectId":"object","draftId":"draft"}',
      },
    ]);
    expect(JSON.parse(String(calls[0]?.body))).toEqual({
      objectType: "TEMPORARY_MATERIAL_DOC",
      fileName: "报告.pdf",
      fileSha256: "38523c087796e5d5dd1cf9bad1fb026781a838dd9dd2cf8af58b9f6502a46778",
      fileSize: 5,
      fileOwnerInfo: { uid: "the-uid", teamId: "the-uid" },
      useEdge: false,
    });
    expect(JSON.stringify(calls[1]?.headers)).not.toContain("the-api-key");
  });

  it.each([
    ["is not to be prepared", { prepare: { code: "400", desc: "no" } }, "refused to prepare"],
    ["is answered by a page", { prepare: "<html>the-api-key</html>" }, "refused to prepare"],
    ["is refused", { status: 401 }, "refused to prepare an upload with status 401"],
    ["has no id", { prepare: { ...PREPARED, objectId: undefined } }, "without an id"],
    ["has no place", { prepare: { ...PREPARED, uploadInfos: [] } }, "where the bytes"],
    ["has a place without an address", { prepare: { ...PREPARED, uploadInfos: [{}] } }, "where the bytes"],
    ["is not taken", { sendStatus: 403 }, "refused with status 403"],
    ["is not to be completed", { complete: { code: "1" } }, "refused to complete"],
  ] as const)("that %s fails, and says nothing secret", async (_, script, words) => {
    const error = await upload(script).result.catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(UploadError);
    expect((error as UploadError).message).toContain(words);
    expect((error as UploadError).message).not.toMatch(/secret|the-api-key|storage/);
  });
});

describe("files of an answer", () => {
  const raw = (text: string): Part => ({ raw: Buffer.from(text).toString("base64"), filename: `${text}.bin` });
  const say = { text: "And:" };
  const message = { messageId: "m", role: "ROLE_AGENT", parts: [say, raw("c")] } as const;
  const artifact = { artifactId: "a", parts: [say, raw("a"), { url: "https://files.example/x" }] };
  const status = { state: "TASK_STATE_COMPLETED", message } as const;

  function uploads(fail = false) {
    const uploaded: string[] = [];
    const prepare = createFileUploads(async ({ name }) => {
      uploaded.push(name);
      if (fail) throw new UploadError("No.");
      return `id of ${name}`;
    }, SILENT_LOG);
    return { prepare, uploaded };
  }

  const at = { taskId: "t", contextId: "s" };
  it.each<[string, StreamEvent, string[]]>([
    ["an artifact", { artifactUpdate: { ...at, artifact } }, ["a.bin"]],
    ["a status", { statusUpdate: { ...at, status } }, ["c.bin"]],
    ["a message", { message }, ["c.bin"]],
    ["a task", { task: { id: "t", contextId: "s", status, artifacts: [artifact] } }, ["c.bin", "a.bin"]],
  ])("in %s are uploaded once, however often they are sent", async (_, event, names) => {
    const { prepare, uploaded } = uploads();
    const prepared = await prepare(event);
    expect(await prepare(event)).toEqual(prepared);
    expect(uploaded).toEqual(names);
    for (const name of names) expect(JSON.stringify(prepared)).toContain(`id of ${name}`);
  });

  it("that cannot be uploaded stay as they are", async () => {
    const { prepare } = uploads(true);
    const event = { artifactUpdate: { ...at, artifact } };
    expect(await prepare(event)).toEqual(event);
  });

  it("that are none cost nothing", async () => {
    const { prepare, uploaded } = uploads();
    const event = { artifactUpdate: { ...at, artifact: { artifactId: "a", parts: [say] } } };
    expect(await prepare(event)).toBe(event);
    expect(uploaded).toEqual([]);
  });
});

describe("the platform", () => {
  let simulator: Simulator;
  beforeAll(async () => {
    simulator = await createSimulator({ clock: new FakeClock(), random: seededRandom(3) });
  });
  afterAll(() => simulator.close());

  it("takes an upload in the three steps", async () => {
    const { apiKey = "", uid = "" } = simulator.agent;
    const fileId = await createPlatformUpload({ uid, apiKey }, simulator.origin)(FILE);
    expect(simulator.uploads.has(fileId)).toBe(true);
    expect(simulator.uploads.bytes(fileId)).toEqual(FILE.bytes);
    expect(simulator.violations).toEqual([]);
  });

  it("takes none with a wrong key", async () => {
    const { uid = "" } = simulator.agent;
    await expect(createPlatformUpload({ uid, apiKey: "wrong" }, simulator.origin)(FILE)).rejects.toThrow(UploadError);
  });
});
