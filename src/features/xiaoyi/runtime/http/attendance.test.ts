import { describe, expect, it } from "vitest";
import { settle } from "../../../../core/engine/testing/fake-clock.ts";
import type { JsonObject } from "../../../../core/model/json.ts";
import type { Message } from "../../../../core/model/message.ts";
import type { FrameStream, Operation, StreamFrame } from "../../../../core/model/operation.ts";
import { SILENT_LOG } from "../../../../core/model/ports.ts";
import { type ExchangeReply, isStreamReply } from "../../../../core/wire/exchange.ts";
import { createDeferred } from "../../../../core/wire/link.ts";
import { RecordedNotifications } from "../../codec/testing/recorded-notifications.ts";
import { createFileUploads } from "../upload.ts";
import { entryOf, frame, framesOf, quiet, serve, statusFrame, streamOf, taskOf } from "./fixtures/serving.ts";
import type { Entry } from "./options.ts";

const TASK = frame({ task: taskOf("task-of-the-engine", "TASK_STATE_WORKING") });
const DONE = statusFrame("TASK_STATE_COMPLETED");

function message(parts: readonly JsonObject[] = [{ kind: "text", text: "hi" }]): JsonObject {
  const params = { id: "task-1", sessionId: "sess-1", message: { role: "user", parts } };
  return { jsonrpc: "2.0", id: "msg-1", method: "message/stream", params };
}

interface Told {
  readonly reply: ExchangeReply;
  readonly asked: readonly Operation[];
  readonly notifications: RecordedNotifications;
}

async function ask(frames: FrameStream | Error, more: Partial<Entry> = {}, body = message()): Promise<Told> {
  const notifications = new RecordedNotifications();
  const answer = (operation: Operation) => {
    if (operation.kind !== "stream") return quiet(operation);
    if (frames instanceof Error) throw frames;
    return frames;
  };
  const { asked, reply } = await serve(body, { answer, entries: [entryOf({ notifications, ...more })] });
  return { asked, reply, notifications };
}

/** Reads so many writes of a stream and leaves. */
async function readSome(reply: ExchangeReply, writes: number): Promise<void> {
  if (!isStreamReply(reply)) throw new Error("A stream was expected.");
  const frames = reply.frames[Symbol.asyncIterator]();
  for (let count = 0; count < writes; count++) await frames.next();
  await frames.return?.();
  await settle();
}

/** Says what it is given, and then nothing, until it is left. */
function silentAfter(...frames: readonly StreamFrame[]): FrameStream & { readonly wasLeft: boolean } {
  let wasLeft = false;
  const given = [...frames];
  let stop = (): void => {};
  return {
    get wasLeft() {
      return wasLeft;
    },
    [Symbol.asyncIterator]: () => ({
      async next() {
        const next = given.shift();
        if (next !== undefined) return { done: false as const, value: [next] };
        await new Promise<void>((resolve) => {
          stop = resolve;
        });
        return { done: true as const, value: undefined };
      },
      async return() {
        wasLeft = true;
        stop();
        return { done: true as const, value: undefined };
      },
    }),
  };
}

describe("the reader of a stream", () => {
  it("is registered with the message, and has read what it ends with", async () => {
    const { asked, notifications, reply } = await ask(streamOf(TASK, DONE));
    expect(asked.at(-1)).toMatchObject({ kind: "stream", replyTo: notifications.replyTo("sess-1") });
    await framesOf(reply);
    expect(notifications.calls).toEqual([
      ["device", "sess-1", undefined, undefined],
      ["attend", "sess-1"],
      ["finished"],
    ]);
  });

  it("has read it also if the connection closes before the stream does", async () => {
    const { notifications, reply } = await ask(streamOf(TASK, DONE));
    await readSome(reply, 2);
    expect(notifications.calls.at(-1)).toEqual(["finished"]);
  });

  it.each([0, 1])("that leaves after %i writes has left", async (writes) => {
    const source = silentAfter(TASK);
    const { notifications, reply } = await ask(source);
    await readSome(reply, writes);
    expect(notifications.calls.at(-1)).toEqual(["left"]);
    expect(source.wasLeft).toBe(true);
  });

  it("counts as gone if the server stops", async () => {
    const { notifications, reply } = await ask(streamOf(TASK));
    expect((await framesOf(reply)).at(-1)?.result.final).toBe(true);
    expect(notifications.calls.at(-1)).toEqual(["left"]);
  });

  it("is forgotten if the message is refused", async () => {
    const { notifications, reply } = await ask(new Error("Broken."));
    expect(isStreamReply(reply)).toBe(false);
    expect(notifications.calls.at(-1)).toEqual(["left"]);
  });
});

describe("a device", () => {
  it("is registered by the push id in its message", async () => {
    const variables = { kind: "data", data: { variables: { systemVariables: { push_id: "device" } } } };
    const { notifications } = await ask(streamOf(TASK, DONE), {}, message([variables, { kind: "text", text: "hi" }]));
    expect(notifications.calls[0]).toEqual(["device", "sess-1", "device", undefined]);
  });

  const tap = (): JsonObject =>
    message([
      {
        kind: "data",
        data: {
          events: [{ header: { namespace: "Common", name: "Trigger" }, payload: { dataMap: { pushDataId: "p" } } }],
        },
      },
    ]);

  it("whose notification is tapped gets all that it stood for, in one artifact that is the end", async () => {
    const notifications = new RecordedNotifications();
    notifications.answer = "All of it.";
    const { asked, reply } = await ask(streamOf(TASK, DONE), { notifications }, tap());
    expect(await framesOf(reply)).toMatchObject([
      {
        id: "msg-1",
        result: {
          taskId: "task-1",
          kind: "artifact-update",
          append: false,
          lastChunk: true,
          final: true,
          artifact: { parts: [{ kind: "text", text: "All of it." }] },
        },
        error: { code: 0 },
      },
    ]);
    expect(notifications.calls.at(-1)).toEqual(["read", "p"]);
    expect(asked).toEqual([]);
  });

  it("shows that its answer is no longer available", async () => {
    const { reply } = await ask(streamOf(TASK, DONE), {}, tap());
    expect(JSON.stringify(await framesOf(reply))).toContain("This is no longer available.");
  });
});

describe("a message with files", () => {
  const withFile = message([{ kind: "file", file: { name: "a.txt", mimeType: "txt", uri: "https://f.example/a" } }]);

  function intakeOf(arrived: Promise<void>): NonNullable<Entry["intake"]> {
    return {
      hasFiles: ({ parts }: Message) => parts.some((part) => "url" in part),
      download: async (given: Message) => {
        await arrived;
        return { ...given, parts: [{ text: "What was in it." }] };
      },
    };
  }

  it("is answered before they have come, and put to the agent when they have", async () => {
    const gate = createDeferred();
    const { asked, reply } = await ask(streamOf(TASK, DONE), { intake: intakeOf(gate.promise) }, withFile);
    if (!isStreamReply(reply)) throw new Error("A stream was expected.");
    const frames = reply.frames[Symbol.asyncIterator]();
    expect((await frames.next()).value).toContain('"state":"working"');
    expect(asked).toEqual([]);
    gate.resolve();
    expect((await frames.next()).value).toContain('"state":"completed"');
    expect(asked.at(-1)).toMatchObject({ kind: "stream", message: { parts: [{ text: "What was in it." }] } });
  });

  it("is put to the agent also where its sender leaves before they have come", async () => {
    const gate = createDeferred();
    const { asked, notifications, reply } = await ask(silentAfter(TASK), { intake: intakeOf(gate.promise) }, withFile);
    await readSome(reply, 1);
    gate.resolve();
    await settle();
    expect(asked.at(-1)).toMatchObject({ kind: "stream", replyTo: notifications.replyTo("sess-1") });
    expect(notifications.calls.at(-1)).toEqual(["left"]);
  });

  it("is refused in the stream where the agent does not take it", async () => {
    const { notifications, reply } = await ask(new Error("Broken."), { intake: intakeOf(Promise.resolve()) }, withFile);
    const frames = await framesOf(reply);
    expect(frames.filter(({ result }) => result.final)).toHaveLength(1);
    expect(frames.at(-1)?.error.code).not.toBe(0);
    expect(notifications.calls.at(-1)).toEqual(["left"]);
  });
});

describe("files of an answer", () => {
  const file = { artifactId: "a", parts: [{ raw: "AAAA", filename: "a.png", mediaType: "image/png" }] };
  const artifact = frame({ artifactUpdate: { taskId: "task-1", contextId: "sess-1", artifact: file } });

  it("are given to the platform first, and named by their ids there", async () => {
    const prepare = createFileUploads(async ({ name }) => `id of ${name}`, SILENT_LOG);
    const { reply } = await ask(streamOf(TASK, artifact, DONE), { prepare, render: "phone" });
    const frames = await framesOf(reply);
    expect(frames.find(({ result }) => JSON.stringify(result).includes("fileId"))).toMatchObject({
      result: {
        kind: "artifact-update",
        append: true,
        lastChunk: false,
        final: false,
        artifact: {
          artifactId: "task-1",
          parts: [{ kind: "file", file: { name: "a.png", mimeType: "image/png", fileId: "id of a.png" } }],
        },
      },
      error: { code: 0 },
    });
  });

  it("are represented by their names without upload credentials", async () => {
    const { reply } = await ask(streamOf(TASK, artifact, DONE), { render: "phone" });
    expect(JSON.stringify(await framesOf(reply))).toContain('{"kind":"text","text":"a.png"}');
  });
});
