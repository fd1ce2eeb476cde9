import type { UnyieldedEvents } from "../engine/agent.ts";

/** Finding a place in the code takes about as long as an event: it is done for the first turns of an agent … */
const TRACED_TURNS = 100;
/** … and for the first events of a turn; an agent that makes more of them before it yields one is not observed further. */
const MAX_MADE = 16;

/** The mistakes of one agent, so that each is reported once. */
export interface MadeEvents {
  /** Notes that an agent made an event, which it has to yield. `call` is the function that made it. */
  note(unyielded: UnyieldedEvents, event: object, name: string, call: (...values: never[]) => unknown): void;
  beginTurn(): void;
}

/**
 * Remembers where an agent made its events, for a warning about one that is made and not yielded: a forgotten `yield`
 * leaves a task that is completed and empty. After the first turns only the mistake is found and not its place, until an
 * agent has made one.
 */
export function createMadeEvents(): MadeEvents {
  let turns = 0;
  let hasMistakes = false;
  const reported = new Set<string>();
  return {
    beginTurn() {
      turns++;
    },
    note(unyielded, event, name, call) {
      if (unyielded.size >= MAX_MADE) return;
      const place = hasMistakes || turns <= TRACED_TURNS ? capture(call) : undefined;
      unyielded.set(event, () => {
        hasMistakes = true;
        const at = place && callSiteOf(place);
        const key = `${name} ${at}`;
        if (reported.has(key)) return undefined;
        reported.add(key);
        const verb = name === "reply" ? "return" : name === "stream" ? "yield*" : "yield";
        const where = at === undefined ? "" : ` at ${at}`;
        return `turn.${name}(…)${where} has no effect, because its result was not yielded: write "${verb} turn.${name}(…)".`;
      });
    },
  };
}

/** One frame, and its text only if it is asked for. */
function capture(call: (...values: never[]) => unknown): { readonly stack?: string } {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 1;
  const place = {};
  Error.captureStackTrace(place, call);
  Error.stackTraceLimit = limit;
  return place;
}

function callSiteOf({ stack = "" }: { readonly stack?: string }): string | undefined {
  const [, frame = ""] = stack.split("\n    at ");
  const place = frame.replace(/^.* \((.*)\)$/, "$1").replace(/^(?:async )?file:\/\//, "");
  return place === "" ? undefined : place;
}
