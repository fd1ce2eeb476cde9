import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseAlternativeNames, toPeerCertificate } from "./tls.ts";

describe("alternative names", () => {
  it("are distinguished by kind", () => {
    const list = "DNS:a.example, URI:spiffe://example/a, email:a@example.com, IP Address:192.0.2.1, DNS:b.example";
    expect(
      toPeerCertificate({ subject: { CN: "a" }, subjectaltname: list, valid_to: "Jan  1 00:00:00 2030 GMT" }, true),
    ).toEqual({
      verified: true,
      commonName: "a",
      uris: ["spiffe://example/a"],
      dnsNames: ["a.example", "b.example"],
      emails: ["a@example.com"],
      expires: Date.UTC(2030, 0, 1),
    });
  });

  it("cannot be smuggled in one another", () => {
    const smuggled = 'URI:"http://evil.example/, URI:spiffe://example/admin", DNS:c.example';
    expect(parseAlternativeNames(smuggled)).toEqual([
      { kind: "URI", value: "http://evil.example/, URI:spiffe://example/admin" },
      { kind: "DNS", value: "c.example" },
    ]);
  });

  it.each(['URI:"unclosed', "no kind", 'URI:"a"b, DNS:c', "DNS:a, , DNS:b"])("have to be readable: %s", (list) => {
    expect(parseAlternativeNames(list)).toEqual([]);
  });

  it("come back as they were written, quoted where Node quotes", () => {
    const name = fc.record({ kind: fc.constantFrom("DNS", "URI", "email"), value: fc.string({ minLength: 1 }) });
    const written = ({ kind, value }: { kind: string; value: string }) =>
      `${kind}:${/[",'\\\p{C}]/u.test(value) || value.startsWith('"') ? JSON.stringify(value) : value}`;
    fc.assert(
      fc.property(fc.array(name), (names) => {
        expect(parseAlternativeNames(names.map(written).join(", "))).toEqual(names);
      }),
    );
  });

  it("of any text never throw", () => {
    fc.assert(fc.property(fc.string(), (list) => Array.isArray(parseAlternativeNames(list))));
  });

  it("several common names are none", () => {
    expect(toPeerCertificate({ subject: { CN: ["a", "b"] } }, true).commonName).toBeUndefined();
  });
});
