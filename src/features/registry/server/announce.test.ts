import { describe, expect, it } from "vitest";
import { ConnectionError } from "../../../core/client/errors.ts";
import type { LogFields } from "../../../core/model/ports.ts";
import { RegistryError } from "../client/types.ts";
import { announce } from "./announce.ts";

const AGENTS = ["echo", "outline"].map((name) => ({
  name,
  cardUrl: `http://127.0.0.1:4000/agents/${name}/.well-known/agent-card.json`,
}));

/** A registry whose answers are chosen by the test, and a clock that stands still until the next timer is run. */
function startAnnouncing(
  url = "http://127.0.0.1:5000",
  initially?: (call: string) => Error | undefined,
  prefix = "id-",
) {
  const calls: string[] = [];
  const logged: string[] = [];
  const pauses: number[] = [];
  let failureOf = initially ?? (() => undefined);
  let timer: (() => void) | undefined;
  let waiting = () => {};
  const made = async <T>(call: string, value: T): Promise<T> => {
    calls.push(call);
    const failure = failureOf(call);
    if (failure !== undefined) throw failure;
    return value;
  };
  const entry = (id: string) => ({ id, identifier: "urn:x", displayName: id, type: "t" });
  const note = (fields: LogFields, message: string) => void logged.push(`${message} ${fields.agent ?? ""}`.trim());
  const options = {
    url,
    agents: AGENTS,
    registry: {
      register: (agent: object) => {
        const name = /agents\/(\w+)/.exec(JSON.stringify(agent))?.[1] ?? "";
        expect(agent).toMatchObject({ ttlSeconds: 60, visibility: "public" });
        return made(`register ${name}`, entry(`${prefix}${name}`));
      },
      heartbeat: (id: string) => made(`heartbeat ${id}`, { id }),
      remove: (id: string) => made(`remove ${id}`, undefined),
    },
    clock: {
      now: () => 0,
      after(pause: number, run: () => void) {
        pauses.push(pause);
        timer = run;
        waiting();
        return () => {
          timer = undefined;
        };
      },
    },
    random: () => 0.5,
    log: { debug: note, info: note, warn: note, error: note },
  };
  const idle = () =>
    new Promise<void>((resolve) => {
      waiting = resolve;
      if (timer !== undefined) resolve();
    });
  const announcement = announce(options);
  return {
    calls,
    logged,
    pauses,
    announcement,
    get isWaiting() {
      return timer !== undefined;
    },
    idle,
    fail(error: Error | undefined, when = (_call: string) => true) {
      failureOf = (call) => (when(call) ? error : undefined);
    },
    /** Runs the pending timer and returns the calls until the next one. */
    async next(): Promise<readonly string[]> {
      await idle();
      calls.length = 0;
      const run = timer;
      timer = undefined;
      run?.();
      await idle();
      return [...calls];
    },
  };
}

describe("announcing agents to another registry", () => {
  it("registers them, sends heartbeats well within the ttl, and removes them at the end", async () => {
    const scene = startAnnouncing();
    await scene.idle();
    expect(scene.calls).toEqual(["register echo", "register outline"]);
    expect(await scene.next()).toEqual(["heartbeat id-echo", "heartbeat id-outline"]);
    expect(scene.pauses).toEqual([15_000, 15_000]);
    scene.calls.length = 0;
    await scene.announcement.close();
    expect(scene.calls).toEqual(["remove id-echo", "remove id-outline"]);
    expect(scene.isWaiting).toBe(false);
    expect(scene.logged).toEqual(["Agent registered echo", "Agent registered outline"]);
  });

  it("has nothing to renew or remove in the registry of the server itself", async () => {
    const scene = startAnnouncing(undefined, undefined, "self.");
    expect(await scene.next()).toEqual([]);
    await scene.announcement.close();
    expect(scene.calls).toEqual([]);
    expect(scene.logged).toEqual(["Agent registered echo", "Agent registered outline"]);
  });

  it("registers again what the registry has forgotten", async () => {
    const scene = startAnnouncing();
    await scene.idle();
    scene.fail(new RegistryError("NOT_FOUND", "Agent not found."), (call) => call === "heartbeat id-echo");
    expect(await scene.next()).toEqual(["heartbeat id-echo", "register echo", "heartbeat id-outline"]);
  });

  it("waits longer and longer while the registry is away, says so once, and continues when it is back", async () => {
    const scene = startAnnouncing();
    await scene.idle();
    scene.fail(new ConnectionError("unreachable", "Connection refused."));
    for (let at = 0; at < 6; at++) await scene.next();
    expect(scene.pauses.slice(1)).toEqual([750, 1_500, 3_000, 6_000, 12_000, 15_000]);
    expect(scene.logged.slice(2)).toEqual(["Agent not registered echo", "Agent not registered outline"]);
    scene.fail(undefined);
    expect(await scene.next()).toEqual(["heartbeat id-echo", "heartbeat id-outline"]);
    expect(scene.pauses.at(-1)).toBe(15_000);
  });

  it("registers the others if one is refused", async () => {
    const refused = new RegistryError("INVALID_ARGUMENT", "The card is broken.");
    const scene = startAnnouncing(undefined, (call) => (call === "register echo" ? refused : undefined));
    await scene.idle();
    expect(scene.pauses).toEqual([15_000]);
    expect(await scene.next()).toEqual(["register echo", "heartbeat id-outline"]);
    await scene.announcement.close();
    expect(scene.calls.at(-1)).toBe("remove id-outline");
    expect(scene.logged.filter((line) => line === "Agent not registered echo")).toHaveLength(1);
  });

  it("ends though the registry is away", async () => {
    const scene = startAnnouncing();
    await scene.idle();
    scene.fail(new ConnectionError("unreachable", "Connection refused."));
    await scene.announcement.close();
    expect(scene.logged.at(-1)).toBe("Agents not removed from the registry; they expire there");
  });

  it.each([
    ["http://127.0.0.1:5000", 0],
    ["https://registry.example.com", 1],
  ])("warns if the registry at %s cannot reach the cards", (url, warnings) => {
    const { logged } = startAnnouncing(url);
    expect(logged.filter((line) => line.includes("server.publicUrl"))).toHaveLength(warnings);
  });
});
