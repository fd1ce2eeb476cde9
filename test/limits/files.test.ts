import { beforeEach, describe, expect, it } from "vitest";
import type { RemoteAgent } from "../../src/core/client/options.ts";
import type { Part } from "../../src/core/model/message.ts";
import type { DragomanServer } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";
import { Stage } from "../support/stage.ts";
import { INTERFACES, speaking } from "./interfaces.ts";

const LARGEST = 1_000;

let server: DragomanServer;
let stage: Stage;
beforeEach(async () => {
  stage = new Stage();
  server = await startServer({
    agents: { stage: stage.agent({ inputModes: ["*/*"] }) },
    limits: { file: LARGEST, mediaTypes: ["application/pdf", "image/*"] },
  });
});

const fileOf = (bytes: number, mediaType?: string): Part => ({
  raw: Buffer.alloc(bytes, 7).toString("base64"),
  filename: "file",
  ...(mediaType === undefined ? undefined : { mediaType }),
});

/** What comes of a message with one file beside its text. */
async function asking(agent: RemoteAgent, file: Part): Promise<string> {
  const message = { parts: [{ text: "artifact ok" }, file] };
  try {
    const outcome = await agent.send({ message });
    return "task" in outcome ? outcome.task.status.state : "message";
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe.each(INTERFACES)("$dialect over $binding", (spoken) => {
  it("refuses files that are too large before work starts, by the bytes that they have", async () => {
    const agent = await speaking(server.url, spoken);
    const answers: Record<number, string> = {};
    for (const bytes of [0, LARGEST - 1, LARGEST, LARGEST + 1, LARGEST + 2, LARGEST + 3]) {
      answers[bytes] = await asking(agent, fileOf(bytes, "image/png"));
    }
    expect(answers).toEqual({
      0: "TASK_STATE_COMPLETED",
      999: "TASK_STATE_COMPLETED",
      1000: "TASK_STATE_COMPLETED",
      1001: "INVALID_PARAMS",
      1002: "INVALID_PARAMS",
      1003: "INVALID_PARAMS",
    });
    expect(stage.started).toHaveLength(3);
  });

  it("refuses files of other media types before work starts, sent along or as a link", async () => {
    const agent = await speaking(server.url, spoken);
    const link = (mediaType?: string): Part => ({
      url: "https://files.example/one",
      ...(mediaType === undefined ? undefined : { mediaType }),
    });
    const answers: string[] = [];
    const files = [fileOf(1, "application/pdf"), fileOf(1, "IMAGE/PNG; a=b"), link("image/gif")];
    const others = [fileOf(1, "application/pdfx"), fileOf(1), fileOf(1, "images/png"), link("text/html"), link()];
    for (const file of [...files, ...others]) answers.push(await asking(agent, file));
    expect(answers).toEqual([
      ...files.map(() => "TASK_STATE_COMPLETED"),
      ...others.map(() => "CONTENT_TYPE_NOT_SUPPORTED"),
    ]);
    expect(stage.started).toHaveLength(files.length);
  });

  it("does not ask of texts and data what it asks of files", async () => {
    const agent = await speaking(server.url, spoken);
    const parts = [{ text: `artifact ${"x".repeat(2 * LARGEST)}` }, { data: { long: "x".repeat(2 * LARGEST) } }];
    expect(await agent.send({ message: { parts } })).toMatchObject({
      task: { status: { state: "TASK_STATE_COMPLETED" } },
    });
  });
});

it("files may be as large as parts by default", async () => {
  const lenient = await startServer({
    agents: { stage: stage.agent({ inputModes: ["*/*"] }) },
    limits: { part: LARGEST },
  });
  const agent = await speaking(lenient.url, INTERFACES[0]);
  expect(await asking(agent, fileOf(LARGEST))).toBe("TASK_STATE_COMPLETED");
  expect(await asking(agent, fileOf(LARGEST + 1, "anything/at-all"))).toBe("INVALID_PARAMS");
});
