import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "./errors.ts";
import {
  addAncestor,
  checkHopLimit,
  EXTENSIONS,
  type Hops,
  limitHops,
  NO_HOPS,
  readDeadline,
  readHops,
  withHops,
} from "./extensions.ts";
import type { JsonValue } from "./json.ts";

const LIMIT = 8;
const NOW = Date.UTC(2026, 0, 1);
const said = (value: JsonValue) => ({ [EXTENSIONS.hops]: value });

function codeOf(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    return ProtocolError.is(error) ? error.code : "something else";
  }
}

describe("what the metadata of a request says of its way", () => {
  it("is nothing where it says nothing", () => {
    expect(readHops(undefined)).toEqual(NO_HOPS);
    expect(readHops({ other: 1 })).toEqual(NO_HOPS);
    expect(readHops(said({}))).toEqual(NO_HOPS);
  });

  it("is read back as it was written, one call further", () => {
    const way: Hops = { hops: 2, ancestors: ["a", "b"] };
    const metadata = withHops({ kept: true }, way, NOW);
    expect(metadata.kept).toBe(true);
    expect(readHops(metadata)).toEqual({ hops: 3, ancestors: ["a", "b"] });
  });

  it.each([
    [5],
    ["x"],
    [null],
    [[]],
    [{ hops: -1 }],
    [{ hops: 1.5 }],
    [{ hops: "1" }],
    [{ ancestors: "a" }],
    [{ ancestors: [1] }],
  ])("is refused where it is %j", (value) => {
    expect(codeOf(() => readHops(said(value)))).toBe("INVALID_PARAMS");
  });

  it("is read or refused, whatever it is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect([undefined, "INVALID_PARAMS"]).toContain(codeOf(() => readHops(said(value as JsonValue))));
      }),
    );
  });
});

describe("how long the caller of a request waits", () => {
  it("is not said by most", () => {
    expect(readDeadline(undefined, NOW)).toBeUndefined();
    expect(readDeadline(said({ hops: 1, ancestors: [] }), NOW)).toBeUndefined();
    expect(withHops(undefined, NO_HOPS, NOW)[EXTENSIONS.hops]).toEqual({ hops: 1, ancestors: [] });
  });

  it("is passed on as the time that remains, by whatever clock it is read", () => {
    const came: Hops = { hops: 0, ancestors: [], deadline: NOW + 5_000 };
    const metadata = withHops(undefined, came, NOW + 1_000);
    expect(metadata[EXTENSIONS.hops]).toEqual({ hops: 1, ancestors: [], remainingMs: 4_000 });
    expect(readDeadline(metadata, 77)).toBe(4_077);
    expect(withHops(undefined, came, NOW + 9_000)[EXTENSIONS.hops]).toMatchObject({ remainingMs: 0 });
  });

  it("only gets shorter", () => {
    const came: Hops = { ...NO_HOPS, deadline: 50 };
    expect([limitHops(came, 40).deadline, limitHops(came, 60).deadline]).toEqual([40, 50]);
    expect([limitHops(came, undefined).deadline, limitHops(NO_HOPS, 60).deadline]).toEqual([50, 60]);
  });

  it("is no limit where no timer could wait for it", () => {
    expect(readDeadline(said({ remainingMs: 2 ** 31 - 1 }), 0)).toBe(2 ** 31 - 1);
    expect(readDeadline(said({ remainingMs: 2 ** 31 }), 0)).toBeUndefined();
    expect(readDeadline(said({ remainingMs: Number.MAX_SAFE_INTEGER }), 0)).toBeUndefined();
  });

  it.each([[-1], [0.5], [1e300], ["5000"], [null], [[5_000]], [{}], [true], [Number.NaN], [Number.POSITIVE_INFINITY]])(
    "is refused where it is %j",
    (remainingMs) => {
      expect(codeOf(() => readDeadline(said({ remainingMs }), NOW))).toBe("INVALID_PARAMS");
    },
  );

  it("is read or refused, whatever it is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const read = () => readDeadline(said({ remainingMs: value as JsonValue }), NOW);
        expect([undefined, "INVALID_PARAMS"]).toContain(codeOf(read));
      }),
    );
  });
});

describe("a chain of agents", () => {
  /** Calls from agent to agent until one is refused; the last is who refused. */
  function callsUntilRefused(agents: (at: number) => string): { calls: number; message: string } {
    let way = NO_HOPS;
    for (let calls = 0; ; calls++) {
      try {
        checkHopLimit(way, LIMIT);
      } catch (error) {
        return { calls, message: (error as Error).message };
      }
      way = readHops(withHops(undefined, addAncestor(way, agents(calls), "task"), NOW));
    }
  }

  it("may be as long as the limit", () => {
    const { calls, message } = callsUntilRefused((at) => `agent ${at}`);
    expect(calls).toBe(LIMIT + 1);
    expect(message).toContain("9 agents");
  });

  it("may come back to the same agents as long as it stays within the limit", () => {
    const { calls, message } = callsUntilRefused((at) => (at % 2 === 0 ? "one" : "other"));
    expect(calls).toBe(LIMIT + 1);
    expect(message).toContain("9 agents");
  });

  it("cannot hide behind a smaller number than the agents it names", () => {
    const ancestors = Array.from({ length: LIMIT + 1 }, (_, at) => `agent ${at}`);
    expect(codeOf(() => checkHopLimit({ hops: 0, ancestors }, LIMIT))).toBe("UNSUPPORTED_OPERATION");
  });
});
