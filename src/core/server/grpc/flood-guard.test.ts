/** Calls that end before anyone was admitted for them: resets over many connections, and calls without credentials. */

import { constants } from "node:http2";
import { describe, expect, it } from "vitest";
import { ANONYMOUS } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import { CALL_COST, FloodGuard, RESET_COST } from "./connection.ts";
import { HEALTH_SERVICE } from "./services/health.ts";
import { begunCall, closeAfterEach, connectionTo, FRAME, frame, openEndpoint, RawFrames } from "./testing/clients.ts";
import { recording } from "./testing/fake-serving.ts";
import { framed } from "./testing/raw-http2.ts";

closeAfterEach();

const CANCEL = Buffer.from([0, 0, 0, constants.NGHTTP2_CANCEL]);
/** Ten at once, and one more a second. */
const connections = { resetsPerAddress: 1 };

function sendResets(frames: RawFrames, count: number): void {
  for (let stream = 1; stream < 2 * count; stream += 2) {
    frames.send(Buffer.concat([begunCall(stream), frame(FRAME.reset, 0, stream, CANCEL)]));
  }
}

const admit = ({ headers }: { readonly headers: Readonly<Record<string, string | undefined>> }) =>
  headers.key === undefined ? ANONYMOUS : { owner: "alice", authenticated: true };

describe("resets over many connections", () => {
  it("have their address refused for a while, but for those who have shown credentials", async () => {
    let now = 1_000_000;
    const { meter, counted } = recording();
    const endpoint = await openEndpoint({ connections, admit, meter, now: () => now });
    const known = connectionTo(endpoint);
    const isAnswered = async () =>
      (await known.call("Say", framed("well"), { key: "alice" })).body.equals(framed("well"));
    expect(await isAnswered()).toBe(true);
    const idle = new RawFrames(endpoint.port);
    await expect.poll(() => idle.seen).toContain(FRAME.settings);
    const attackers = Array.from({ length: 5 }, () => new RawFrames(endpoint.port));
    for (const attacker of attackers) sendResets(attacker, 4);
    await Promise.all([...attackers, idle].map(({ closed }) => closed));
    expect(attackers.flatMap(({ seen }) => seen)).toContain(FRAME.goaway);
    expect(counted).toContain("requests_limited");
    const next = new RawFrames(endpoint.port);
    await next.closed;
    expect(next.seen).toEqual([]);
    expect(await isAnswered()).toBe(true);
    now += 10_001;
    expect((await connectionTo(endpoint).call("Say", framed("again"))).body).toEqual(framed("again"));
  });

  it("of hundreds of calls that have begun to be answered leave the server able to answer others", async () => {
    const endpoint = await openEndpoint({ connections, admit });
    const known = connectionTo(endpoint);
    expect((await known.call("Say", framed("well"), { key: "alice" })).body).toEqual(framed("well"));
    const { session } = connectionTo(endpoint);
    session.on("error", () => {});
    const watches = Array.from({ length: 600 }, () => {
      const watch = session.request({
        ":method": "POST",
        ":path": `/${HEALTH_SERVICE}/Watch`,
        "content-type": "application/grpc",
      });
      watch.on("error", () => {});
      watch.end(framed(""));
      return new Promise((resolve) => watch.once("response", resolve).once("close", resolve));
    });
    await Promise.all(watches);
    session.destroy();
    expect((await known.call("Say", framed("still"), { key: "alice" })).body).toEqual(framed("still"));
  });

  it("are not those of calls whose caller was admitted", async () => {
    const { meter, counted } = recording();
    const endpoint = await openEndpoint({ connections, meter, handle: () => new Promise(() => {}) });
    const connection = connectionTo(endpoint);
    for (let call = 0; call < 50; call++) {
      const stream = connection.request("Say");
      stream.end(framed("x"));
      await new Promise((resolve) => connection.session.ping(resolve));
      stream.close(constants.NGHTTP2_CANCEL);
    }
    await new Promise((resolve) => connection.session.ping(resolve));
    expect(connection.session.closed).toBe(false);
    expect(counted).toEqual([]);
  });
});

describe("calls without credentials", () => {
  it.each([
    ["that are refused", {}],
    ["for health", { ":path": `/${HEALTH_SERVICE}/Check` }],
    ["for what does not exist", { ":path": "/no.Such/Method" }],
  ])("may be as many as ten times the resets: %s", async (_, path) => {
    const refused = new ProtocolError("UNAUTHENTICATED", "Credentials are needed.");
    const endpoint = await openEndpoint({ connections, admit: () => refused, now: () => 0 });
    const { session, call } = bound(connectionTo(endpoint));
    const calmed = new Promise<number>((resolve) => session.once("goaway", resolve));
    const answers = await Promise.all(Array.from({ length: 100 }, () => call("Say", framed(""), path)));
    expect(answers.every(({ headers }) => Number(headers[":status"]) === 200)).toBe(true);
    expect(session.closed).toBe(false);
    for (let more = 0; more < 2; more++) void call("Say", framed(""), path);
    expect(await calmed).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  });
});

function bound(connection: ReturnType<typeof connectionTo>) {
  return { session: connection.session, call: connection.call.bind(connection) };
}

describe("the guard", () => {
  it("bounds all addresses together, and does not count what one was refused for", () => {
    const guard = new FloodGuard(50, () => 0);
    const charge = (network: string, times: number, cost = RESET_COST) => {
      const excess = Array.from({ length: times }, () => guard.charge(network, cost));
      return excess.find((one) => one !== undefined);
    };
    expect(charge("one", 100_000)).toBe("address");
    expect(guard.isBlocked("one")).toBe(true);
    for (let network = 0; network < 9; network++) expect(charge(`n${network}`, 500)).toBeUndefined();
    expect(charge("last", 10)).toBe("all");
    expect(guard.isBlocked("last")).toBe(false);
    expect(charge("other", 1, CALL_COST)).toBe("all");
  });

  it("remembers no more addresses than it must", () => {
    const guard = new FloodGuard(1, () => 0);
    for (let network = 0; network <= 20_000; network++)
      for (let reset = 0; reset < 11; reset++) guard.charge(`n${network}`, RESET_COST);
    expect([guard.isBlocked("n0"), guard.isBlocked("n20000")]).toEqual([false, true]);
  });
});
