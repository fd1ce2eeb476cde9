import type { InterfaceCheck } from "../check.ts";
import { type Fields, fieldsOf, listOf, sameJson, show } from "../json.ts";
import { ensure, fail, notShown } from "../outcome.ts";
import { isError } from "../peers/error-table.ts";
import { historyOf, type Scene, showError } from "../scene.ts";

/** Sends parts and gives them back as the server has kept them. */
function keptParts(scene: Scene, parts: readonly Fields[], what: string): Promise<readonly unknown[]> {
  return scene.unjudged(() => sentAndKept(scene, parts, what));
}

async function sentAndKept(scene: Scene, parts: readonly Fields[], what: string): Promise<readonly unknown[]> {
  const message = scene.message("tck-complete-task", { parts });
  const answer = await scene.call("SendMessage", { message });
  if (!answer.ok) {
    if (isError(answer.error, "CONTENT_TYPE_NOT_SUPPORTED", scene.peer.binding, scene.version))
      notShown(`the agent does not take ${what}`);
    fail(`a message with ${what} was refused: ${showError(answer.error)}`);
  }
  const sent = scene.outcomeOf(answer.result);
  if (!("task" in sent)) notShown("the agent answers without a task");
  const kept = historyOf(await scene.get(sent.task.id)).find(({ messageId }) => messageId === message.messageId);
  return kept === undefined ? notShown("the server does not keep a history") : listOf(kept.parts);
}

const BYTES = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte)).toString("base64");

export const ENCODING_CHECKS: readonly InterfaceCheck[] = [
  {
    name: "empty-content",
    shows: ["DM-PART-002"],
    async run(scene) {
      const text = { text: "tck-complete-task (conformance check)" };
      const kept = await keptParts(scene, [text, { text: "" }], "an empty text");
      ensure(fieldsOf(kept[1]).text === "", `an empty text came back as ${show(kept[1])}`);
      if (!takes(scene, "application/json")) return;
      const values = await keptParts(scene, [text, { data: null, mediaType: "application/json" }], "data");
      const part = fieldsOf(values[1]);
      ensure("data" in part && part.data === null, `null as data came back as ${show(values[1])}`);
    },
  },
  {
    name: "bytes-come-back",
    shows: ["DM-BYTES-001"],
    async run(scene) {
      const mediaType = scene.declared.inputModes.find((mode) => mode.includes("/") && !mode.includes("*"));
      const parts = [
        { text: "tck-complete-task (conformance check)" },
        { raw: BYTES, filename: "bytes.bin", mediaType: mediaType ?? "application/octet-stream" },
      ];
      const kept = await keptParts(scene, parts, "bytes");
      const raw = fieldsOf(kept[1]).raw;
      const same = typeof raw === "string" && sameJson(Buffer.from(raw, "base64").toString("base64"), BYTES);
      ensure(same, `256 bytes came back as ${show(kept[1])}`);
    },
  },
];

function takes(scene: Scene, mediaType: string): boolean {
  return scene.declared.inputModes.some((mode) => mode === mediaType || mode === "*/*");
}
