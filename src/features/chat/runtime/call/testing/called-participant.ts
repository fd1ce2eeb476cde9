/** A participant that is called, played by the test: raw posts in, raw posts out. */

import type { PeerCaller } from "../../../../../core/dialects/carrier.ts";
import { echo } from "../../../../../core/engine/testing/agents.ts";
import { FakeClock, settle } from "../../../../../core/engine/testing/fake-clock.ts";
import { ProtocolError } from "../../../../../core/model/errors.ts";
import type { StreamEvent } from "../../../../../core/model/event.ts";
import type { FrameStream, Operation } from "../../../../../core/model/operation.ts";
import type { CounterName } from "../../../../../core/model/ports.ts";
import type { ChannelAbilities } from "../../../../../core/wire/channel.ts";
import { type Member, MemoryNetwork, type RawPost } from "../../testing/memory-network.ts";
import { Stage } from "../../testing/stage.ts";
import { createChannelCalls } from "../calls.ts";
import type { CallLimits } from "../tools.ts";

export const HELPER: Member = { id: "u-helper", name: "helper", bot: true };
export const STRANGER: Member = { id: "u-stranger", name: "stranger", bot: true };
export const ADDRESS = "a2a-lite:memory/lobby#u-helper";
export const CALLER = "u-agent";
export const WHERE = "u-helper in lobby on memory";

interface SetUpOptions {
  readonly abilities?: Partial<ChannelAbilities>;
  readonly limits?: CallLimits;
}

export async function setUp({ abilities = {}, limits = {} }: SetUpOptions = {}) {
  const clock = new FakeClock();
  const network = new MemoryNetwork({ clock, abilities });
  const counted: CounterName[] = [];
  const meter = { count: (name: CounterName) => void counted.push(name) };
  const open = (after?: Stage) =>
    Stage.open(network, {
      agent: echo(),
      clock,
      calls: (tools) => createChannelCalls({ ...tools, meter }, limits),
      ...(after !== undefined && { after }),
    });
  const stage = await open();
  return {
    clock,
    network,
    stage,
    open,
    caller: callerOf(stage),
    helper: new CalledPeer(network),
    dropped: () => counted.filter((name) => name === "channel_answers_dropped").length,
  };
}

export function callerOf(stage: Stage): PeerCaller {
  const caller = stage.carrier.peer?.(ADDRESS);
  if (caller === undefined) throw new Error("The peer cannot be called.");
  return caller;
}

class CalledPeer {
  readonly #network: MemoryNetwork;
  #read = 0;

  constructor(network: MemoryNetwork) {
    this.#network = network;
  }

  /** The next post of the caller. */
  async next(): Promise<RawPost> {
    for (;;) {
      await settle(1);
      const post = this.#network.posts.slice(this.#read).find(({ by }) => by === CALLER);
      if (post === undefined) continue;
      this.#read = this.#network.posts.indexOf(post) + 1;
      return post;
    }
  }

  /** The id of the task in the next post of the caller. */
  async nextTask(): Promise<string> {
    return taskIdOf(await this.next());
  }

  say(text: string, more: Parameters<MemoryNetwork["say"]>[2] = {}): RawPost {
    return this.#network.say(HELPER, text, more);
  }
}

export function taskIdOf({ text }: RawPost): string {
  const id = /(?:id|task)=([\w-]+)/.exec(text)?.[1];
  if (id === undefined) throw new Error(`No task in: ${text}`);
  return id;
}

export function message(text: string, taskId?: string): Operation & { kind: "stream" } {
  const inTask = taskId === undefined ? undefined : { taskId };
  return {
    kind: "stream",
    message: { messageId: `m-${text}`, role: "ROLE_USER", contextId: "c", parts: [{ text }], ...inTask },
  };
}

export const send = (text: string, taskId?: string) => ({ ...message(text, taskId), kind: "send" }) as const;

export async function eventsOf(frames: FrameStream): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const batch of frames) events.push(...batch.map(({ event }) => event));
  return events;
}

/** Short forms of events: the state and its text, or the name of the artifact and its text. */
export function summaryOf(events: readonly StreamEvent[]): string[] {
  return events.map((event) => {
    if ("task" in event) return `task ${event.task.status.state.slice("TASK_STATE_".length)}`;
    if ("message" in event) return "message";
    const parts =
      "artifactUpdate" in event
        ? event.artifactUpdate.artifact.parts
        : (event.statusUpdate.status.message?.parts ?? []);
    const text = parts.map((part) => ("text" in part ? part.text : (part.filename ?? ""))).join("|");
    const about =
      "artifactUpdate" in event
        ? event.artifactUpdate.artifact.artifactId
        : event.statusUpdate.status.state.slice("TASK_STATE_".length);
    return text === "" ? about : `${about}: ${text}`;
  });
}

export async function failureOf(promise: Promise<unknown>): Promise<ProtocolError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!ProtocolError.is(error)) throw new Error("It did not fail as it should.", { cause: error });
  return error;
}
