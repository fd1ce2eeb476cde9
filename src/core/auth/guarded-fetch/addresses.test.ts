import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type AddressKind,
  classifyAddress,
  embeddedAddress,
  isWithin,
  parseAddress,
  parseRange,
} from "./target-policy.ts";

const kindOfText = (text: string): AddressKind | undefined => {
  const address = parseAddress(text);
  return address && classifyAddress(address);
};

describe("addresses", () => {
  it.each<[string, AddressKind]>([
    ["8.8.8.8", "public"],
    ["1.1.1.1", "public"],
    ["172.15.255.255", "public"],
    ["172.32.0.0", "public"],
    ["100.63.255.255", "public"],
    ["100.128.0.0", "public"],
    ["223.255.255.255", "public"],
    ["0.0.0.0", "unspecified"],
    ["0.1.2.3", "unspecified"],
    ["10.0.0.1", "private"],
    ["172.16.0.1", "private"],
    ["172.31.255.255", "private"],
    ["192.168.1.1", "private"],
    ["100.64.0.1", "carrier"],
    ["127.0.0.1", "loopback"],
    ["127.255.255.254", "loopback"],
    ["169.254.1.1", "link-local"],
    ["169.254.169.254", "metadata"],
    ["169.254.170.2", "metadata"],
    ["100.100.100.200", "metadata"],
    ["168.63.129.16", "metadata"],
    ["192.0.0.1", "reserved"],
    ["192.0.2.1", "documentation"],
    ["198.51.100.1", "documentation"],
    ["203.0.113.1", "documentation"],
    ["198.19.255.255", "benchmark"],
    ["224.0.0.1", "multicast"],
    ["239.255.255.255", "multicast"],
    ["240.0.0.1", "reserved"],
    ["255.255.255.255", "reserved"],
    ["2606:4700:4700::1111", "public"],
    ["2001:4860:4860::8888", "public"],
    ["::", "unspecified"],
    ["::1", "loopback"],
    ["::7f00:1", "transition"],
    ["::ffff:127.0.0.1", "transition"],
    ["::ffff:8.8.8.8", "transition"],
    ["::ffff:0:127.0.0.1", "transition"],
    ["64:ff9b::7f00:1", "transition"],
    ["64:ff9b:1::7f00:1", "transition"],
    ["2002:7f00:1::", "transition"],
    ["2001:0:4136:e378:8000:63bf:3fff:fdd2", "transition"],
    ["2606:4700::5efe:10.0.0.1", "transition"],
    ["2606:4700::200:5efe:10.0.0.1", "transition"],
    ["fc00::1", "unique-local"],
    ["fdff::1", "unique-local"],
    ["fd00:ec2::254", "metadata"],
    ["fd20:ce::254", "metadata"],
    ["fe80::1", "link-local"],
    ["fe80::1%eth0", "link-local"],
    ["fec0::1", "private"],
    ["ff02::1", "multicast"],
    ["2001:db8::1", "documentation"],
    ["3fff::1", "documentation"],
    ["2001:2::1", "benchmark"],
    ["2001:20::1", "reserved"],
    ["100::1", "reserved"],
    ["4000::1", "reserved"],
    ["5f00::1", "reserved"],
    ["[::1]", "loopback"],
  ])("%s is %s", (text, kind) => {
    expect(kindOfText(text)).toBe(kind);
  });

  it.each([
    "",
    "localhost",
    "127.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "2130706433",
    "1.2.3",
    "1.2.3.4.5",
    "::g",
    "1.2.3.256",
  ])("%j is none", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  it.each([
    ["::ffff:10.1.2.3", "10.1.2.3"],
    ["64:ff9b::10.1.2.3", "10.1.2.3"],
    ["2002:a01:203::1", "10.1.2.3"],
    ["2001:0:4136:e378:8000:63bf:f5fe:fdfc", "10.1.2.3"],
    ["2606:4700::1", undefined],
    ["10.1.2.3", undefined],
  ])("%s leads to %s", (text, inner) => {
    const address = parseAddress(text);
    expect(address && embeddedAddress(address)?.toString()).toBe(inner);
  });

  it("reads ranges", () => {
    const [outer, inner] = [parseRange("10.0.0.0/8"), parseAddress("10.200.3.4")];
    expect(outer && inner && isWithin(inner, outer)).toBe(true);
    const other = parseAddress("11.0.0.1");
    expect(outer && other && isWithin(other, outer)).toBe(false);
    const six = parseAddress("::ffff:10.0.0.1");
    expect(outer && six && isWithin(six, outer)).toBe(false);
    for (const wrong of ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "fd00::/129", "host/8"]) {
      expect(parseRange(wrong)).toBeUndefined();
    }
  });

  const octet = fc.integer({ min: 0, max: 255 });
  const dotted = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join("."));

  it("says nothing public of an IPv4 address in any IPv6 clothes", () => {
    fc.assert(
      fc.property(
        dotted,
        fc.constantFrom("::", "::ffff:", "::ffff:0:", "64:ff9b::", "64:ff9b:1::"),
        (inner, prefix) => {
          const kind = kindOfText(`${prefix}${inner}`);
          expect(["transition", "unspecified", "loopback"]).toContain(kind);
        },
      ),
    );
  });

  it("classifies every address, and its own embedded one, in every spelling alike", () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    fc.assert(
      fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
        const long = groups.map((one) => one.toString(16).padStart(4, "0")).join(":");
        const short = parseAddress(long)?.toString() ?? "";
        expect(kindOfText(long.toUpperCase())).toBe(kindOfText(short));
        expect(kindOfText(`[${short}]`)).toBe(kindOfText(short));
        if (!/^[23]/.test(long)) expect(kindOfText(long)).not.toBe("public");
      }),
    );
  });

  it("is private in each spelling that a URL can have", () => {
    fc.assert(
      fc.property(octet, octet, octet, fc.constantFrom("decimal", "hex", "octal", "short"), (b, c, d, spelling) => {
        const value = 10 * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d;
        const spelled = {
          decimal: String(value),
          hex: `0x${value.toString(16)}`,
          octal: `0${value.toString(8)}`,
          short: `10.${value % 2 ** 24}`,
        }[spelling];
        expect(kindOfText(new URL(`http://${spelled}/`).hostname)).toBe("private");
      }),
    );
  });
});
