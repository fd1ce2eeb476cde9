/** The contract of `contract.ts` as tests. Every dialect must pass, whatever its transport and whichever side dials. */

import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { ERROR_CODES, type ErrorCode, ProtocolError } from "../model/errors.ts";
import { type Message, type Part, textOf } from "../model/message.ts";
import type { Operation, OperationKind, SendOutcome, StreamFrame } from "../model/operation.ts";
import type { Abilities, AgentService, Calling, Dialect } from "./contract.ts";
import { describeFidelity, type FidelityOptions } from "./suite/fidelity.ts";
import { describeGarbage } from "./suite/garbage.ts";
import { allFrames, createScriptedService, type Joined, join, nameOf, type ScriptedService } from "./suite/join.ts";
import { beginsWithEnd, OPERATIONS, PARTS, streamingOnly, valuesWithin } from "./suite/values.ts";

interface DialectUnderTest extends FidelityOptions {
  /** Values arrive unchanged, ids included. Otherwise only their content has to arrive. */
  readonly exact: boolean;
  /** Error codes that the dialect cannot express, and the codes they become. */
  readonly errors?: Partial<Record<ErrorCode, ErrorCode>>;
  /** Whether an error is sent with a message of its own, because people read it. */
  readonly hasGeneralMessage?: (error: ProtocolError) => boolean;
  /** The dialect has only streams: a send is sent as one. */
  readonly streamsOnly?: boolean;
  /** Every send returns a task: a message without one arrives as the status message of a completed task. */
  readonly answersByTask?: boolean;
  /** Projection for comparing streams that the dialect encodes as other events. Default: the events themselves. */
  readonly ofStream?: (frames: readonly StreamFrame[]) => unknown;
}

const KINDS = Object.keys(OPERATIONS) as OperationKind[];

export function describeDialect(dialect: Dialect, options: DialectUnderTest): void {
  describe(dialect.name, () => {
    describeAbilities(dialect);
    for (const calling of dialect.calling) {
      describe(`over ${nameOf(calling)}`, () => {
        describeRoundTrips(dialect, calling, options);
        describeErrors(dialect, calling, options);
        describeLosses(dialect, calling, options);
        if (options.exact || options.comparable !== undefined) describeFidelity(dialect, calling, options);
        describeGarbage(dialect, calling, serviceFor(options));
      });
    }
  });
}

function describeAbilities({ name, can, serving, calling }: Dialect): void {
  it("says of everything whether it can", () => {
    expect(Object.keys(can.operations).sort()).toEqual([...KINDS].sort());
    expect(Object.keys(can.parts).sort()).toEqual(["data", "raw", "text", "url"]);
    const { operations, parts, ...rest } = can;
    expect(Object.keys(rest).sort()).toEqual([
      "artifacts",
      "chosenIds",
      "inputRequired",
      "metadata",
      "replay",
      "returnImmediately",
      "streaming",
    ]);
    for (const answer of [...Object.values(operations), ...Object.values(parts), ...Object.values(rest)]) {
      expect(typeof answer).toBe("boolean");
    }
  });

  it("does not contradict itself", () => {
    expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
    expect(can.operations.stream).toBe(can.streaming);
    expect(can.operations.send).toBe(true);
    expect(can.parts.text).toBe(true);
    if (can.replay) expect(can.operations.subscribe).toBe(true);
    expect(calling.length).toBeGreaterThan(0);
    expect(serving.push !== undefined).toBe(can.operations["push-create"]);
    expect(serving.jsonRpc ?? serving.http ?? serving.rpc ?? serving.carriers).toBeDefined();
  });
}

interface Pair {
  readonly service: ScriptedService;
  readonly joined: Joined;
}

function serviceFor({ streamsOnly = false }: DialectUnderTest): (scripted: AgentService) => AgentService {
  return streamsOnly ? streamingOnly : (scripted) => scripted;
}

function pairing(dialect: Dialect, calling: Calling, options: DialectUnderTest): () => Pair {
  const open: Joined[] = [];
  afterEach(async () => {
    await Promise.all(open.splice(0).map((joined) => joined.close()));
  });
  return () => {
    const service = createScriptedService();
    const joined = join(dialect, calling, serviceFor(options)(service));
    open.push(joined);
    return { service, joined };
  };
}

function describeRoundTrips(dialect: Dialect, calling: Calling, options: DialectUnderTest): void {
  const { answersByTask = false, exact, ofStream = eventsOf } = options;
  const replyIn = (outcome: SendOutcome): Message | undefined => {
    if ("message" in outcome) return answersByTask ? undefined : outcome.message;
    return answersByTask ? outcome.task.status.message : undefined;
  };
  const pair = pairing(dialect, calling, options);
  const values = valuesWithin(dialect.can);
  const same = (received: Message, sent: Message) => {
    if (exact) expect(received).toEqual(sent);
    else expect(comparableText(received.parts)).toEqual(comparableText(sent.parts));
  };

  it("what is sent arrives, and the message that answers it comes back", async () => {
    const { service, joined } = pair();
    await fc.assert(
      fc.asyncProperty(values.message, values.reply, async (message, reply) => {
        service.answer = () => ({ message: reply });
        const outcome = await joined.ask({ kind: "send", message });
        const asked = service.asked.at(-1);
        expect(asked?.kind).toBe("send");
        same((asked as Extract<Operation, { kind: "send" }>).message, message);
        const answer = replyIn(outcome);
        expect(answer).toBeDefined();
        if (answer !== undefined) same(answer, reply);
      }),
    );
    if (!answersByTask) expect(joined.losses).toEqual([]);
  });

  if (dialect.can.operations.get) {
    it.each(["send", "get", "cancel"] as const)("a task comes back from %s", async (kind) => {
      const { service, joined } = pair();
      await fc.assert(
        fc.asyncProperty(values.task, async (task) => {
          service.answer = () => (kind === "send" ? { task } : task);
          const outcome = await joined.ask<Operation>(OPERATIONS[kind]);
          const received = kind === "send" ? (outcome as { task: typeof task }).task : outcome;
          const lost = joined.losses.splice(0);
          if (exact) expect(received).toEqual(task);
          else if (lost.length === 0)
            expect(received).toMatchObject({ id: task.id, status: { state: task.status.state } });
        }),
      );
    });
  }

  if (dialect.can.streaming) {
    const kinds = (["stream", "subscribe"] as const).filter((kind) => dialect.can.operations[kind]);
    it.each(kinds)("every frame of %s comes, in order", async (kind) => {
      const { service, joined } = pair();
      await fc.assert(
        fc.asyncProperty(values.frames, async (frames) => {
          fc.pre(kind === "stream" || !beginsWithEnd(frames.map(({ event }) => event)));
          service.answer = async function* () {
            for (const frame of frames) yield [frame];
          };
          const received = await allFrames(await joined.ask(OPERATIONS[kind]));
          const lost = joined.losses.splice(0);
          if (exact || lost.length === 0) expect(ofStream(received)).toEqual(ofStream(frames));
          if (dialect.can.replay)
            expect(received.map(({ number }) => number)).toEqual(frames.map(({ number }) => number));
          expect(received.map(({ json }) => JSON.parse(json))).toEqual(received.map(({ event }) => event));
        }),
        { numRuns: 30 },
      );
    });

    it("a stream that breaks ends in the error that broke it", async () => {
      const { service, joined } = pair();
      service.answer = async function* () {
        yield [];
        throw new ProtocolError("UNAVAILABLE", "gone");
      };
      const received = (async () => allFrames(await joined.ask(OPERATIONS.stream)))();
      await expect(received).rejects.toMatchObject({ code: "UNAVAILABLE" });
    });
  }

  it("what it cannot ask is refused before it is sent", async () => {
    for (const kind of KINDS.filter((one) => !dialect.can.operations[one])) {
      const { service, joined } = pair();
      const asked = (async () => joined.ask<Operation>(OPERATIONS[kind]))();
      await expect(asked).rejects.toMatchObject({ code: "UNSUPPORTED_OPERATION" });
      expect(service.asked).toEqual([]);
    }
  });

  it("keeps several questions at a time apart", async () => {
    const { service, joined } = pair();
    service.answer = async (operation) => {
      const { message } = operation as Extract<Operation, { kind: "send" }>;
      const delay = Number(textOf(message.parts)) % 3;
      for (let turn = 0; turn < delay; turn++) await new Promise((resolve) => setImmediate(resolve));
      return { message: { ...message, role: "ROLE_AGENT" } };
    };
    const texts = Array.from({ length: 12 }, (_, index) => String(index));
    const answers = await Promise.all(
      texts.map((text) =>
        joined.ask({
          kind: "send",
          message: { messageId: text, role: "ROLE_USER", parts: [{ text }], contextId: `context-${text}` },
        }),
      ),
    );
    expect(answers.map((answer) => textOf(replyIn(answer)?.parts ?? []))).toEqual(texts);
  });
}

function describeErrors(dialect: Dialect, calling: Calling, options: DialectUnderTest): void {
  const { errors = {}, hasGeneralMessage = () => false } = options;
  const pair = pairing(dialect, calling, options);

  it.each(ERROR_CODES)("%s is decoded as it was raised", async (code) => {
    const { service, joined } = pair();
    const raised = new ProtocolError(code, "Because.");
    service.answer = () => {
      throw raised;
    };
    const received = await joined.ask(OPERATIONS.send).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(ProtocolError.is(received)).toBe(true);
    expect(received).toMatchObject({ code: errors[code] ?? code });
    const isShown = code !== "INTERNAL_ERROR" && !hasGeneralMessage(raised);
    if (isShown) expect((received as Error).message).toContain("Because.");
  });

  it("tells nothing of an error that is not the protocol's", async () => {
    const { service, joined } = pair();
    service.answer = () => {
      throw new Error("password is 1234");
    };
    const received = await joined.ask(OPERATIONS.send).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(received).toMatchObject({ code: "INTERNAL_ERROR" });
    expect(String((received as Error).message)).not.toContain("1234");
  });
}

function describeLosses(dialect: Dialect, calling: Calling, options: DialectUnderTest): void {
  const pair = pairing(dialect, calling, options);
  const kinds = Object.keys(PARTS) as (keyof Abilities["parts"])[];
  const unsupported = kinds.filter((kind) => !dialect.can.parts[kind]);

  it("says what it lost, in both directions", async () => {
    for (const kind of unsupported) {
      const parts: Part[] = [{ text: "hello" }, PARTS[kind]];
      const { service, joined } = pair();
      service.answer = () => ({ message: { messageId: "a", role: "ROLE_AGENT", parts: [{ text: "fine" }] } });
      const message: Message = { messageId: "m", role: "ROLE_USER", parts, contextId: "c" };
      await joined.ask({ kind: "send", message });
      const sent = joined.losses.splice(0);
      expect(sent.map(({ path }) => path)).toContain("message.parts[1]");
      service.answer = () => ({ message: { messageId: "a", role: "ROLE_AGENT", parts } });
      await joined.ask(OPERATIONS.send);
      const received = joined.losses.splice(0);
      expect(received.map(({ path }) => path)).toContain("message.parts[1]");
      for (const loss of [...sent, ...received]) expect(loss.reason).not.toBe("");
    }
  });
}

function comparableText(parts: readonly Part[]): string {
  return textOf(parts);
}

function eventsOf(frames: readonly StreamFrame[]): unknown {
  return frames.map(({ event }) => event);
}
