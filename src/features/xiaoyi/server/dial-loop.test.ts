import { describe, expect, it } from "vitest";
import type { DialledConnection } from "../../../core/dialects/carrier.ts";
import { DialLoop } from "../../../core/dialects/shared/dial-loop.ts";
import { FakeClock } from "../../../core/engine/testing/fake-clock.ts";
import type { Log } from "../../../core/model/ports.ts";
import type { Closure } from "../../../core/wire/connection.ts";
import { DialError } from "../../../core/wire/dial-error.ts";
import type { Link } from "../../../core/wire/link.ts";
import { createLinkPair } from "../../../core/wire/testing/link-pair.ts";
import { explainTrouble } from "./open-links.ts";

const RECONNECT = { baseMs: 2_000, capMs: 60_000, maxTries: 50, resetAfterMs: 10_000 };

type Attempt = DialError | "link" | "hang";

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Every attempt goes as planned, the last plan for ever; time is the test's. */
class Scene {
  readonly clock = new FakeClock();
  readonly lines: Line[] = [];
  /** When each attempt was made, in milliseconds from the start. */
  readonly attempts: number[] = [];
  /** What happened to links, in order. */
  readonly events: string[] = [];
  readonly loop: DialLoop;
  readonly #start = this.clock.now();
  readonly #plan: Attempt[];
  #far: Link | undefined;

  constructor(...plan: readonly Attempt[]) {
    this.#plan = [...plan];
    const at = (level: string) => (fields: Line["fields"], message: string) =>
      void this.lines.push({ level, message, fields });
    const log: Log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
    const connection: DialledConnection<Link> = {
      label: "Xiaoyi",
      about: { agentId: "a" },
      policy: RECONNECT,
      dial: (signal) => this.#dial(signal),
      converse: (link) => this.#converse(link),
      explain: explainTrouble,
    };
    this.loop = new DialLoop(connection, { clock: this.clock, random: () => 0.999_999, log });
  }

  async #dial(signal: AbortSignal): Promise<Link> {
    this.attempts.push(this.clock.now() - this.#start);
    const next = this.#plan.length > 1 ? this.#plan.shift() : this.#plan[0];
    if (next instanceof DialError) throw next;
    if (next === "hang") {
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(new DialError("stopped", "stopped")));
      });
    }
    const [near, far] = createLinkPair();
    this.#far = far;
    this.events.push("open");
    return {
      ...near,
      close: () => {
        this.events.push("closed");
        near.close();
      },
    };
  }

  async #converse(link: Link): Promise<Closure> {
    for await (const _text of link.messages);
    return link.closed;
  }

  /** The platform ends the link. */
  async kick(code: number): Promise<void> {
    this.#far?.close(code, "");
    await this.clock.advance(0);
  }

  get messages(): string[] {
    return this.lines.map(({ level, message }) => `${level}: ${message}`);
  }
}

const unreachable = new DialError("unreachable", "connect ECONNREFUSED");

describe("a connection that is kept open", () => {
  it("is tried again after 2 s, then twice as long each time, 60 s at most, 50 times", async () => {
    const scene = new Scene(unreachable);
    await scene.clock.advance(60 * 60_000);
    const waits = scene.attempts.slice(1).map((at, index) => Math.round((at - (scene.attempts[index] ?? 0)) / 1000));
    expect(waits.slice(0, 7)).toEqual([2, 4, 8, 16, 32, 60, 60]);
    expect(waits).toHaveLength(50);
    expect(scene.loop.state).toBe("given-up");
    expect(scene.messages).toEqual([
      "warn: Could not connect to Xiaoyi; will retry.",
      expect.stringMatching(/^error: Gave up connecting to Xiaoyi/),
    ]);
    await scene.loop.stop();
  });

  it("resets the tries after 10 s of being connected, not before", async () => {
    const scene = new Scene("link");
    await scene.clock.advance(9_999);
    await scene.kick(1001);
    await scene.clock.advance(2_000);
    expect(scene.attempts).toEqual([0, expect.closeTo(11_999, -1)]);
    await scene.clock.advance(5_000);
    await scene.kick(1001);
    await scene.clock.advance(3_900);
    expect(scene.attempts).toHaveLength(2);
    await scene.clock.advance(100);
    expect(scene.attempts).toHaveLength(3);
    await scene.clock.advance(10_000);
    await scene.kick(1001);
    await scene.clock.advance(2_000);
    expect(scene.attempts).toHaveLength(4);
    await scene.loop.stop();
  });

  it("leaves nothing of a connection when it opens the next", async () => {
    const scene = new Scene("link");
    await scene.clock.advance(0);
    for (let round = 0; round < 3; round++) {
      await scene.kick(1000);
      await scene.clock.advance(60_000);
    }
    expect(scene.events).toEqual(["open", ...Array.from({ length: 3 }, () => ["closed", "open"]).flat()]);
    await scene.loop.stop();
  });

  it.each([
    [401, "Xiaoyi refused the credentials of the link. Are ak and sk right, and is this machine's clock?"],
    [403, "Xiaoyi refused the link: the agent is not eligible. Is agentId right, and does it belong to ak?"],
  ])("says what a refusal with %i means, once", async (status, message) => {
    const scene = new Scene(new DialError("refused", `status ${status}`, status));
    await scene.clock.advance(30_000);
    expect(scene.attempts.length).toBeGreaterThan(2);
    expect(scene.lines).toEqual([
      { level: "warn", message, fields: { agentId: "a", failure: "refused", status, reason: `status ${status}` } },
    ]);
    await scene.loop.stop();
  });

  it("explains once why it may be closed as soon as it is open", async () => {
    const scene = new Scene("link");
    await scene.clock.advance(1_000);
    await scene.kick(1000);
    await scene.clock.advance(5_000);
    await scene.kick(1000);
    const explained = scene.messages.filter((line) => line.includes("same agent id"));
    expect(explained).toHaveLength(1);
    await scene.loop.stop();
    const later = new Scene("link");
    await later.clock.advance(20_000);
    await later.kick(1000);
    expect(later.messages.filter((line) => line.includes("same agent id"))).toEqual([]);
    await later.loop.stop();
  });

  it("logs one line for each change of state", async () => {
    const scene = new Scene(unreachable, unreachable, "link", unreachable, "link");
    await scene.clock.advance(6_100);
    expect(scene.loop.state).toBe("up");
    await scene.clock.advance(20_000);
    await scene.kick(1006);
    expect(scene.loop.state).toBe("waiting");
    await scene.clock.advance(6_100);
    expect(scene.messages.map((line) => line.slice(0, 26))).toEqual([
      "warn: Could not connect to",
      "info: Connected to Xiaoyi.",
      "warn: The connection to Xi",
      "warn: Could not connect to",
      "info: Connected to Xiaoyi.",
    ]);
    await scene.loop.stop();
  });

  it.each(["link", "hang", unreachable] as const)("stops, whatever it does at the moment", async (plan) => {
    const scene = new Scene(plan);
    await scene.clock.advance(500);
    await scene.loop.stop();
    expect(scene.loop.state).toBe("stopped");
    const before = scene.attempts.length;
    await scene.clock.advance(120_000);
    expect(scene.attempts).toHaveLength(before);
  });

  it("connects again when a conversation fails", async () => {
    const clock = new FakeClock();
    const lines: string[] = [];
    const note = (_fields: unknown, message: string) => void lines.push(message);
    let served = 0;
    const connection: DialledConnection = {
      label: "a room",
      about: {},
      policy: RECONNECT,
      dial: async () => createLinkPair()[0],
      async converse() {
        served++;
        throw new Error("a mistake");
      },
    };
    const log = { debug: note, info: note, warn: note, error: note };
    const loop = new DialLoop(connection, { clock, random: () => 0, log });
    await clock.advance(2_000);
    expect(served).toBe(2);
    expect(lines).toContain("The connection to a room failed unexpectedly.");
    await loop.stop();
  });
});
