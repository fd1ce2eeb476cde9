import { describe, expect, it } from "vitest";
import type { Caller } from "../../model/caller.ts";
import { ProtocolError } from "../../model/errors.ts";
import { Admission, type AdmissionLimits, DEFAULT_REQUESTS } from "./admission.ts";

const ALICE: Caller = { owner: "alice", authenticated: true, address: "192.0.2.1" };
const BOB: Caller = { owner: "bob", authenticated: true, address: "192.0.2.1" };

function admission(limits: Partial<AdmissionLimits>) {
  const counted: string[] = [];
  const meter = { count: (name: string) => counted.push(name) };
  return { counted, gate: new Admission({ ...DEFAULT_REQUESTS, ...limits }, () => 0, meter) };
}

function refusal(work: () => unknown): unknown {
  try {
    work();
    return undefined;
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    return [error.code, error.retryAfter];
  }
}

describe("admission", () => {
  it("limits nothing by rate by default", () => {
    const { gate } = admission({});
    for (let at = 0; at < 20_000; at++) {
      expect(gate.checkAddress("192.0.2.1")).toBeUndefined();
      gate.admit(ALICE, ALICE.address);
    }
  });

  it("limits the rate of an address, and of a whole IPv6 network", () => {
    const { gate, counted } = admission({ ratePerAddress: 1, burstPerAddress: 2 });
    expect(gate.checkAddress("2001:db8::1")).toBeUndefined();
    expect(gate.checkAddress("2001:db8::2")).toBeUndefined();
    expect(gate.checkAddress("2001:db8::3")).toMatchObject({ code: "RESOURCE_EXHAUSTED", retryAfter: 1 });
    expect(gate.checkAddress("2001:db9::1")).toBeUndefined();
    expect(gate.checkAddress(undefined)).toBeUndefined();
    expect(counted).toEqual(["requests_limited"]);
  });

  it("limits the rate of an owner wherever it calls from", () => {
    const { gate } = admission({ ratePerOwner: 0.1, burstPerOwner: 1 });
    expect(gate.admit(ALICE, "192.0.2.1")).toEqual(ALICE);
    expect(refusal(() => gate.admit(ALICE, "192.0.2.2"))).toEqual(["RESOURCE_EXHAUSTED", 10]);
    expect(gate.admit({ owner: "bob", authenticated: true }, "192.0.2.1")).toEqual(BOB);
  });

  it("gives five seconds' worth at once by default", () => {
    const { gate } = admission({ ratePerOwner: 2 });
    for (let at = 0; at < 10; at++) gate.admit(ALICE, undefined);
    expect(refusal(() => gate.admit(ALICE, undefined))).toEqual(["RESOURCE_EXHAUSTED", 1]);
  });

  it("limits what is under way by owner and by address, and gives back what was refused", () => {
    const { gate } = admission({ requestsPerOwner: 1, requestsPerAddress: 2 });
    gate.startRequest(ALICE);
    expect(refusal(() => gate.startRequest(ALICE))).toEqual(["RESOURCE_EXHAUSTED", 1]);
    gate.startRequest(BOB);
    const carol = { ...ALICE, owner: "carol" };
    expect(refusal(() => gate.startRequest(carol))).toEqual(["RESOURCE_EXHAUSTED", 1]);
    gate.endRequest(BOB);
    gate.startRequest(carol);
    gate.endRequest(ALICE);
    gate.startRequest(ALICE);
  });
});
