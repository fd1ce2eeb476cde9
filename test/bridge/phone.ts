/** A phone of the Xiaoyi platform as a caller: it talks to an agent of a server that is connected by the link. */
import { toRequest } from "../../src/core/client/content.ts";
import type { ClientEvent, RemoteAgent } from "../../src/core/client/options.ts";
import type { Fields } from "../../src/core/model/json.ts";
import { type Part, textOf } from "../../src/core/model/message.ts";
import type { Task, TaskState } from "../../src/core/model/task.ts";
import { systemClock } from "../../src/core/server/clock-and-ids.ts";
import { createSimulator, type Simulator, seededRandom } from "../../src/features/xiaoyi/simulator/index.ts";
import { closeLater } from "../support/lifecycle.ts";

/** What scenarios need of a caller. */
export type Caller = Pick<RemoteAgent, "cancel" | "send" | "stream">;
type Phone = Simulator["phone"];
type PhoneTask = ReturnType<Phone["send"]>;

const STATES: Readonly<Record<string, TaskState>> = {
  submitted: "TASK_STATE_SUBMITTED",
  working: "TASK_STATE_WORKING",
  "input-required": "TASK_STATE_INPUT_REQUIRED",
  completed: "TASK_STATE_COMPLETED",
  failed: "TASK_STATE_FAILED",
  canceled: "TASK_STATE_CANCELED",
};

function stateOf(state: string): TaskState {
  const known = STATES[state];
  if (known === undefined) throw new Error(`The phone shows the task as ${state}.`);
  return known;
}

/** Each has ids of its own: phones of two platforms must not look like one. */
let platforms = 0;

/** A platform that the agent of a server connects to, with the section of that server's options. */
export async function startPlatform(agent: string) {
  const simulator = await createSimulator({ clock: systemClock, random: seededRandom(++platforms) });
  closeLater(() => simulator.close());
  const { accessKey: ak, agentId, secretKey: sk } = simulator.agent;
  const [url = ""] = simulator.linkUrls;
  return { simulator, link: { agent, agentId, ak, sk, url } };
}

export async function connectPhone(simulator: Simulator): Promise<Caller> {
  await simulator.ready();
  const phone = simulator.addPhone();
  const sendParts = (input: Parameters<Caller["send"]>[0]) => {
    const { parts } = toRequest("send", input, {}).message;
    const files = parts.filter((part) => "raw" in part || "url" in part);
    // A phone knows files by addresses at the platform only.
    return files.length > 0 ? phone.say(textOf(parts), files.map(toFile)) : phone.send(parts.map(toFields));
  };
  return {
    async send(input) {
      const task = sendParts(input);
      await task.waitUntilSettled();
      return { task: toTask(task) };
    },
    async *stream(input) {
      const task = sendParts(input);
      for (;;) {
        const seen = JSON.stringify(toTask(task));
        yield { event: { task: JSON.parse(seen) } } satisfies ClientEvent;
        if (!task.isOpen || task.asks) return;
        await task.waitUntil(() => !task.isOpen || JSON.stringify(toTask(task)) !== seen);
      }
    },
    async cancel(id) {
      const answer = await phone.cancel();
      return { id, contextId: phone.conversationId, status: { state: stateOf(answer) } };
    },
  };
}

function toFile(part: Part) {
  const { filename: name = "", mediaType: mimeType = "" } = part;
  return { name, mimeType, bytes: Buffer.from("raw" in part ? part.raw : "AAEC/w==", "base64") };
}

function toFields(part: Part): Fields {
  return "data" in part ? { kind: "data", data: part.data } : { kind: "text", text: textOf([part]) };
}

/** What is on the screen. */
function toTask(task: PhoneTask): Task {
  const { data, failure, files, notes, text } = task.screen();
  const shown = [
    ...(text === "" ? [] : [{ text }]),
    ...data.map((value) => ({ data: value })),
    ...files.map((file) => ({ data: { ...file } })),
  ];
  const said = [...notes, ...(failure === undefined ? [] : [failure])].map((note) => ({ text: note }));
  const message = { messageId: "", role: "ROLE_AGENT" as const, parts: said };
  return {
    id: task.id,
    contextId: task.conversationId,
    status: { state: stateOf(task.state), ...(said.length > 0 && { message }) },
    artifacts: shown.length === 0 ? [] : [{ artifactId: "screen", parts: shown as Part[] }],
  };
}
