import { describe, expect, it } from "vitest";
import { toNetworkPrefix } from "./caller.ts";

describe("the network an address counts for", () => {
  it.each([
    ["192.0.2.7", "192.0.2.7"],
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::FFFF:192.0.2.7", "192.0.2.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002::1", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["1:2:3:4:5:6::8", "1:2:3:4::/64"],
    ["::3:4:5:6:7:8", "0:0:3:4::/64"],
  ])("of %s is %s", (address, network) => {
    expect(toNetworkPrefix(address)).toBe(network);
  });

  it("is the same for all of a network, in any notation, and for no one else", () => {
    const same = ["2001:db8:0:1::1", "2001:db8:0:1:ffff::", "2001:0db8:0000:0001:0:0:0:2"].map(toNetworkPrefix);
    expect(new Set(same).size).toBe(1);
    expect(toNetworkPrefix("2001:db8:0:2::1")).not.toBe(same[0]);
  });
});
