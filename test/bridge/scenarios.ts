/** What a caller does with an agent, directly or over a bridge, and what it sees of it. */
import type { ClientEvent } from "../../src/core/client/options.ts";
import type { Part } from "../../src/core/model/message.ts";
import type { SendOutcome } from "../../src/core/model/operation.ts";
import type { Artifact, Task, TaskState, TaskStatus } from "../../src/core/model/task.ts";
import type { Stage } from "../support/stage.ts";
import type { Caller } from "./phone.ts";

/** What a caller sees of a task, without ids and times: those are each server's own. */
export interface Seen {
  readonly state: TaskState;
  readonly message?: readonly Part[];
  readonly artifacts: readonly SeenArtifact[];
}

export type SeenArtifact = Omit<Artifact, "artifactId">;

/** What one scenario compares. */
export interface Observed {
  /** At the end. */
  readonly task: Seen;
  /** When the agent asked. */
  readonly asked?: Seen;
  /** Other facts of the scenario. */
  readonly facts?: readonly string[];
}

export interface Scenario {
  readonly name: string;
  /** What is compared. */
  readonly shows: string;
  /** `key` is different for each run: gates are shared by all runs of the stage. */
  run(agent: Caller, stage: Stage, key: string): Promise<Observed>;
}

function seeTask({ artifacts = [], status }: Pick<Task, "artifacts" | "status">): Seen {
  const withoutIds = artifacts.map(({ artifactId: _id, ...artifact }) => artifact);
  const { message, state } = status;
  return { state, ...(message && { message: message.parts }), artifacts: withoutIds };
}

function taskOf(outcome: SendOutcome): Task {
  if ("message" in outcome) throw new Error("The agent answered without a task.");
  return outcome.task;
}

const sendParts = async (agent: Caller, ...parts: readonly Part[]) => taskOf(await agent.send({ message: { parts } }));

const returning = (part: Part) => async (agent: Caller) => ({
  task: seeTask(await sendParts(agent, { text: "return" }, part)),
});

/** A task as the events of a stream make it. */
class Watched {
  id = "";
  #status: TaskStatus = { state: "TASK_STATE_SUBMITTED" };
  readonly #artifacts = new Map<string, Artifact>();

  apply({ event }: ClientEvent): void {
    if ("message" in event) throw new Error("The agent answered without a task.");
    if ("task" in event) {
      this.id = event.task.id;
      this.#status = event.task.status;
      for (const artifact of event.task.artifacts ?? []) this.#artifacts.set(artifact.artifactId, artifact);
    } else if ("statusUpdate" in event) {
      this.id = event.statusUpdate.taskId;
      this.#status = event.statusUpdate.status;
    } else {
      const { append, artifact } = event.artifactUpdate;
      const before = append === true ? this.#artifacts.get(artifact.artifactId) : undefined;
      const parts = [...(before?.parts ?? []), ...artifact.parts];
      this.#artifacts.set(artifact.artifactId, { ...(before ?? artifact), parts });
    }
  }

  get text(): string {
    const parts = [...this.#artifacts.values()].flatMap((artifact) => artifact.parts);
    return parts.map((part) => ("text" in part ? part.text : "")).join("");
  }

  get seen(): Seen {
    return seeTask({ status: this.#status, artifacts: [...this.#artifacts.values()].map(joinTexts) });
  }
}

/** Where a text is cut is not part of what is compared. */
function joinTexts(artifact: Artifact): Artifact {
  const parts: Part[] = [];
  for (const part of artifact.parts) {
    const last = parts.at(-1);
    if (last !== undefined && "text" in last && "text" in part)
      parts.splice(-1, 1, { ...last, text: last.text + part.text });
    else parts.push(part);
  }
  return { ...artifact, parts };
}

export const SCENARIOS: readonly Scenario[] = [
  {
    name: "text",
    shows: "A text is answered by an artifact with a name.",
    run: async (agent) => ({ task: seeTask(await sendParts(agent, { text: "artifact Hello, 你好" })) }),
  },
  {
    name: "data",
    shows: "A nested object goes to the agent and comes back.",
    run: returning({ data: { city: "Oslo", days: [1, 2.5, null, true], nested: { empty: {}, list: [] } } }),
  },
  {
    name: "file by bytes",
    shows: "Bytes with a name and a media type go to the agent and come back.",
    run: returning({ raw: "AAEC/w==", filename: "four.bin", mediaType: "application/octet-stream" }),
  },
  {
    name: "file by URL",
    shows: "An address with a name and a media type goes to the agent and comes back.",
    run: returning({ url: "https://files.example.com/a.png", filename: "a.png", mediaType: "image/png" }),
  },
  {
    name: "streaming",
    shows: "The first piece arrives while the agent still works; all pieces, in order, and the end.",
    async run(agent, stage, key) {
      const task = new Watched();
      const facts: string[] = [];
      for await (const event of agent.stream(`artifact first; hold ${key}; chunks 3`)) {
        task.apply(event);
        if (facts.length === 0 && task.text.includes("first")) {
          facts.push("early");
          stage.open(key);
        }
      }
      return { task: task.seen, facts };
    },
  },
  {
    name: "input-required",
    shows: "The agent's question, and the end of the same task after the answer.",
    async run(agent) {
      const asked = await sendParts(agent, { text: "input Which one?" });
      const { contextId, id: taskId } = asked;
      const answer = { taskId, contextId, parts: [{ text: "artifact This one" }] };
      const done = taskOf(await agent.send({ message: answer }));
      return { asked: seeTask(asked), task: seeTask(done), facts: done.id === taskId ? ["the same task"] : [] };
    },
  },
  {
    name: "cancel",
    shows: "The task is cancelled, its stream ends with that, and the agent stops.",
    async run(agent, stage, key) {
      const script = `artifact Begun; hold ${key}`;
      const task = new Watched();
      let answer: Promise<Task> | undefined;
      for await (const event of agent.stream(script)) {
        task.apply(event);
        if (answer === undefined && task.text.includes("Begun")) {
          await stage.reached(key);
          answer = agent.cancel(task.id);
        }
      }
      const { status } = (await answer)!;
      while (!stage.stopped.includes(script)) await new Promise((resolve) => setImmediate(resolve));
      return { task: task.seen, facts: [status.state] };
    },
  },
  {
    name: "failure",
    shows: "The task fails with the agent's reason.",
    run: async (agent) => ({ task: seeTask(await sendParts(agent, { text: "fail Out of paper" })) }),
  },
  {
    name: "refusal",
    shows: "The task is rejected with the agent's reason.",
    run: async (agent) => ({ task: seeTask(await sendParts(agent, { text: "reject Not today" })) }),
  },
];
