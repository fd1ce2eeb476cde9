import fc from "fast-check";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Loss } from "../../model/loss.ts";
import type { Message } from "../../model/message.ts";
import type { Operation } from "../../model/operation.ts";
import type { Task } from "../../model/task.ts";
import { cases } from "../../model/testing/exploring.ts";
import type { Calling, Dialect } from "../contract.ts";
import * as arbitrary from "./arbitraries.ts";
import { allFrames, createScriptedService, type Joined, join, type ScriptedService } from "./join.ts";
import { beginsWithEnd, frameOf, OPERATIONS } from "./values.ts";

/** Ten thousand values for each codec: messages are cheap, tasks and streams are full of them. */
const MESSAGES = cases(10_000);
const TASKS = cases(10_000, 2_500);
const STREAMS = cases(5_000);

export interface FidelityOptions {
  /** Projection for comparing messages and tasks in dialects that assign their own ids. Default: the whole value. */
  readonly comparable?: {
    readonly message?: (message: Message) => unknown;
    readonly task?: (task: Task) => unknown;
  };
}

/** Any model value: what is not reported as lost arrives unchanged, and every reported loss is declared. */
export function describeFidelity(dialect: Dialect, calling: Calling, { comparable = {} }: FidelityOptions): void {
  const declared = new Set(dialect.losses.map(({ kind, reason }) => `${kind}: ${reason}`));
  const { message: ofMessage = same, task: ofTask = same } = comparable;
  let service: ScriptedService;
  let joined: Joined;
  beforeEach(() => {
    service = createScriptedService();
    joined = join(dialect, calling, service);
  });
  afterEach(() => joined.close());

  /** Clears the list of losses before the next case. */
  const expectDeclared = (): readonly Loss[] => {
    const losses = joined.losses.splice(0);
    for (const { kind, reason } of losses) expect(declared).toContain(`${kind}: ${reason}`);
    return losses;
  };

  it("any message that is encoded without a loss is decoded as it was", async () => {
    service.answer = () => ({ task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } });
    let whole = 0;
    await fc.assert(
      fc.asyncProperty(arbitrary.message, async (any) => {
        const message: Message = { ...any, role: "ROLE_USER" };
        service.asked.length = 0;
        await joined.ask({ kind: "send", message });
        if (expectDeclared().length > 0) return;
        whole++;
        const [asked] = service.asked as Extract<Operation, { kind: "send" }>[];
        expect(asked && ofMessage(asked.message)).toEqual(ofMessage(message));
      }),
      { numRuns: MESSAGES },
    );
    expect(whole).toBeGreaterThan(0);
  });

  if (dialect.can.operations.get) {
    it("any task that is shown without a loss is seen as it was", async () => {
      let whole = 0;
      await fc.assert(
        fc.asyncProperty(arbitrary.task, async (task) => {
          service.answer = () => task;
          const seen = await joined.ask(OPERATIONS.get);
          if (expectDeclared().length > 0) return;
          whole++;
          expect(ofTask(seen)).toEqual(ofTask(task));
        }),
        { numRuns: TASKS },
      );
      expect(whole).toBeGreaterThan(0);
    });
  }

  if (dialect.can.streaming) {
    it("any event that is encoded without a loss is decoded, and nothing else", async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(arbitrary.streamEvent, { minLength: 1, maxLength: 2 }), async (events) => {
          fc.pre(!beginsWithEnd(events));
          service.answer = async function* () {
            yield events.map((event, at) => frameOf(event, at + 1));
          };
          const received = await allFrames(await joined.ask(OPERATIONS.subscribe));
          if (expectDeclared().length > 0 || ofTask !== same) return;
          expect(received.map(({ event }) => event)).toEqual(events);
        }),
        { numRuns: STREAMS },
      );
    });
  }
}

function same<T>(value: T): T {
  return value;
}
