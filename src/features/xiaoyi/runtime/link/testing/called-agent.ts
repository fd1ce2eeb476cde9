/** An agent that dialled in, driven by the test, and the caller it is called through. */
import { expect } from "vitest";
import { toolsOf } from "../../../../../core/dialects/suite/join.ts";
import { FakeClock, promptly, settle } from "../../../../../core/engine/testing/fake-clock.ts";
import { ProtocolError } from "../../../../../core/model/errors.ts";
import type { StreamEvent } from "../../../../../core/model/event.ts";
import type { FrameStream, Operation } from "../../../../../core/model/operation.ts";
import { type CounterName, SILENT_LOG } from "../../../../../core/model/ports.ts";
import type { Link } from "../../../../../core/wire/link.ts";
import { createLinkPair } from "../../../../../core/wire/testing/link-pair.ts";
import { XiaoyiLinkCaller } from "../call/call-link.ts";

export const AGENT = "agent-1";

interface Request {
  readonly id: string;
  readonly method: string;
  readonly agentId: string;
  readonly sessionId: string;
  readonly taskId?: string;
  readonly params: { readonly id: string; readonly sessionId: string; readonly message: { readonly parts: unknown[] } };
}

/** The agent's end of a link, driven by the test. */
export class CalledAgent {
  readonly link: Link;
  readonly #messages: AsyncIterator<string>;

  constructor(link: Link) {
    this.link = link;
    this.#messages = link.messages[Symbol.asyncIterator]();
  }

  introduce(agentId = AGENT): this {
    void this.link.send(JSON.stringify({ msgType: "clawd_bot_init", agentId }));
    return this;
  }

  async next(): Promise<Request> {
    const step = await promptly(this.#messages.next());
    if (step.done === true) throw new Error("The link has closed.");
    return JSON.parse(step.value) as Request;
  }

  /** Asserts that no frame arrives and that no work is pending. */
  async receivesNothing(): Promise<void> {
    let received: unknown;
    void this.#messages.next().then((step) => {
      received = step.value;
    });
    await settle();
    expect(received).toBeUndefined();
  }

  respond(envelope: object, detail: object): void {
    const msgDetail = JSON.stringify({ jsonrpc: "2.0", ...detail });
    void this.link.send(JSON.stringify({ msgType: "agent_response", agentId: AGENT, ...envelope, msgDetail }));
  }

  say(taskId: string, result: object): void {
    this.respond({ sessionId: "s", taskId }, { id: "any", result: { taskId, ...result }, error: { code: 0 } });
  }

  text(taskId: string, text: string, final = false): void {
    this.say(taskId, {
      kind: "artifact-update",
      append: false,
      lastChunk: true,
      final,
      artifact: { artifactId: `a-${text}`, parts: [{ kind: "text", text }] },
    });
  }

  status(taskId: string, state: string, final = false): void {
    this.say(taskId, { kind: "status-update", final, status: { state } });
  }
}

export function setUp() {
  const clock = new FakeClock();
  const counts: Partial<Record<CounterName, number>> = {};
  const warnings: unknown[] = [];
  const calls = new XiaoyiLinkCaller({
    ...toolsOf(),
    clock,
    log: { ...SILENT_LOG, warn: (fields) => warnings.push(fields.why) },
    meter: { count: (name) => (counts[name] = (counts[name] ?? 0) + 1) },
    peerId: AGENT,
    connectMs: 10_000,
    patienceMs: 90_000,
  });
  const connect = () => {
    const [near, far] = createLinkPair();
    const closed = calls.attach(near);
    return Object.assign(new CalledAgent(far), { closed });
  };
  return { calls, clock, connect, counts, warnings, dropped: () => counts.link_frames_dropped ?? 0 };
}

export function message(text: string, ids: { task?: string; context?: string } = {}): Operation & { kind: "stream" } {
  const { context = "s", task = "t1" } = ids;
  return {
    kind: "stream",
    message: { messageId: `m-${text}`, role: "ROLE_USER", taskId: task, contextId: context, parts: [{ text }] },
  };
}

export const send = (text: string, ids?: { task?: string; context?: string }) =>
  ({ ...message(text, ids), kind: "send" }) as const;

export async function eventsOf(frames: FrameStream): Promise<StreamEvent[]> {
  const events: StreamEvent[] = [];
  for await (const batch of frames) events.push(...batch.map(({ event }) => event));
  return events;
}

export async function failureOf(promise: Promise<unknown>): Promise<ProtocolError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!ProtocolError.is(error)) throw new Error("It did not fail as it should.", { cause: error });
  return error;
}
