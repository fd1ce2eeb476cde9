import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../core/model/errors.ts";
import {
  decodePageToken,
  digestOf,
  encodePageToken,
  parseExploreRequest,
  parseListRequest,
  parseRegistration,
  parseSearchRequest,
} from "./query.ts";

/** Whatever comes, it is parsed or refused with a reason that crosses the wire. */
function refusalOf(parse: () => unknown): string | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
    expect(error.code).toBe("INVALID_PARAMS");
    return error.message;
  }
}

describe("a request to search", () => {
  it("is read with its defaults", () => {
    expect(parseSearchRequest({ query: { text: "flights" } })).toEqual({
      query: { text: "flights", filter: { terms: [] } },
      federation: "auto",
      pageSize: 10,
    });
  });

  it("takes a scalar for a list, and the paths of the specification", () => {
    const filter = { type: ["a", "b"], tags: "finance", "metadata.health": "up", publisher: ["acme.com"] };
    expect(parseSearchRequest({ query: { text: "x", filter } }).query.filter.terms).toEqual([
      { field: "type", values: ["a", "b"] },
      { field: "tag", values: ["finance"] },
      { field: "health", values: ["up"] },
      { field: "publisher", values: ["acme.com"] },
    ]);
  });

  it.each([
    [undefined, "body: must be an object"],
    [[], "body: must be an object"],
    [{}, "query.text: is required"],
    [{ query: { text: "  " } }, "query.text: is required"],
    [{ query: { text: 5 } }, "query.text: must be a string"],
    [{ query: { text: "x".repeat(3_000) } }, "query.text: has more than"],
    [{ query: { text: "x", filters: {} } }, "query.filters: is not known"],
    [{ query: { text: "x", filter: [] } }, "query.filter: must be an object"],
    [{ query: { text: "x", filter: { skil: "a" } } }, "Did you mean skill?"],
    [{ query: { text: "x", filter: { __proto__: null, toString: "a" } } }, "cannot be filtered by"],
    [{ query: { text: "x", filter: { health: "well" } } }, "health: must be one of up, unknown, stale, dead"],
    [{ query: { text: "x", filter: { tag: [1] } } }, "must be a string"],
    [{ query: { text: "x", filter: { tag: [] } } }, "tag: needs a value"],
    [{ query: { text: "x", filter: { tag: new Array(101).fill("a") } } }, "more than 100 values"],
    [{ query: { text: "x" }, federation: "all" }, "federation: must be one of auto, referrals, none"],
    [{ query: { text: "x" }, pageSize: 0 }, "pageSize: must be a whole number from 1 to 100"],
    [{ query: { text: "x" }, pageSize: 101 }, "pageSize"],
    [{ query: { text: "x" }, pageSize: 1.5 }, "pageSize"],
    [{ query: { text: "x" }, pageToken: 1 }, "pageToken: must be a string"],
    [{ query: { text: "x" }, limit: 1 }, "limit: is not known"],
  ])("%j is refused", (body, reason) => {
    expect(refusalOf(() => parseSearchRequest(body))).toContain(reason);
  });

  it("never fails in another way", () => {
    const filter = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.array(fc.string()), fc.anything()));
    const likely = fc.record(
      { query: fc.record({ text: fc.string(), filter }), federation: fc.string(), pageSize: fc.integer() },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.oneof(likely, fc.anything()), (body) => {
        refusalOf(() => parseSearchRequest(body));
        refusalOf(() => parseExploreRequest(body));
        refusalOf(() => parseRegistration(body));
      }),
    );
  });
});

describe("a request to explore", () => {
  it("is read with its defaults", () => {
    expect(parseExploreRequest({ resultType: { facets: [{ field: "tags" }] } })).toEqual({
      query: { filter: { terms: [] } },
      facets: [{ name: "tags", field: "tag", limit: 20, minCount: 1 }],
    });
  });

  it.each([
    [{}, "resultType: must be an object"],
    [{ resultType: { facets: [] } }, "must be a list of 1 to 20"],
    [{ resultType: { facets: [{}] } }, "resultType.facets[0].field: must be a string"],
    [{ resultType: { facets: [{ field: "colour" }] } }, "cannot be filtered by"],
    [{ resultType: { facets: [{ field: "tag", limit: 0 }] } }, "limit: must be a whole number"],
  ])("%j is refused", (body, reason) => {
    expect(refusalOf(() => parseExploreRequest(body))).toContain(reason);
  });
});

describe("a registration", () => {
  it.each([
    [{}, "exactly one of url and card"],
    [{ url: "https://a", card: {} }, "exactly one of url and card"],
    [{ url: 5 }, "url: must be a string"],
    [{ url: `https://${"a".repeat(3_000)}` }, "url: has more than 2048 characters"],
    [{ card: [] }, "card: must be an object"],
    [{ url: "https://a", ttlSeconds: 0 }, "ttlSeconds: must be a whole number from 1 to 604800"],
    [{ url: "https://a", ttlSeconds: "60" }, "ttlSeconds"],
    [{ url: "https://a", visibility: "all" }, "visibility: must be one of private, public"],
    [{ url: "https://a", probe: 1 }, "probe: must be true or false"],
    [{ url: "https://a", id: "mine" }, "id: is not known"],
  ])("%j is refused", (body, reason) => {
    expect(refusalOf(() => parseRegistration(body))).toContain(reason);
  });
});

describe("a list", () => {
  it("takes parameters and the expression of the specification", () => {
    const filter = "type = 'a/b,c/d' AND publisherId=acme.com and updatedAfter > \"2026-01-01\"";
    const query = new URLSearchParams({ filter, skill: "s", orderBy: "updatedAt DESC", pageSize: "5" });
    expect(parseListRequest(query.toString())).toEqual({
      filter: {
        terms: [
          { field: "skill", values: ["s"] },
          { field: "type", values: ["a/b", "c/d"] },
          { field: "publisher", values: ["acme.com"] },
        ],
        updatedAfter: Date.UTC(2026, 0, 1),
      },
      order: { field: "updatedAt", descending: true },
      pageSize: 5,
    });
  });

  it.each([
    ["filter=", "filter: cannot be read at character 1"],
    ["filter=type", "cannot be read at character 1"],
    ["filter=type='a' OR tag='b'", "cannot be read"],
    ["filter=type='a' AND", "cannot be read"],
    ["filter=type>'a'", "type is compared with ="],
    ["filter=type='a' AND type='b'", "type is given twice"],
    ["filter=skill='a'&skill=b", "skill: is given twice"],
    ["skill=a&skill=b", "skill: is given twice"],
    ["filter=colour='red'", "cannot be filtered by"],
    ["updatedAfter=yesterday", "must be an ISO 8601 time"],
    ["orderBy=score", "orderBy: must be displayName"],
    ["pageSize=many", "pageSize"],
    ["pageSize=1000", "pageSize"],
    ["limit=5", "cannot be filtered by"],
  ])("%s is refused", (query, reason) => {
    expect(refusalOf(() => parseListRequest(query))).toContain(reason);
  });

  it("never fails in another way", () => {
    const name = fc.constantFrom("filter", "orderBy", "pageSize", "pageToken", "skill", "updatedAfter", "x");
    const expression = fc.stringMatching(/^[a-z]{1,8} ?[=>] ?['"]?[a-z0-9,-]{0,9}['"]?( AND .{0,9})?$/);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.oneof(expression, fc.string()))), (pairs) => {
        refusalOf(() => parseListRequest(new URLSearchParams(pairs).toString()));
      }),
    );
    fc.assert(fc.property(fc.string(), (query) => void refusalOf(() => parseListRequest(query))));
  });
});

describe("a page token", () => {
  it("is read as it was made, for the same request only", () => {
    fc.assert(
      fc.property(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.string(), (i, s, request) => {
        const digest = digestOf(request);
        const token = encodePageToken(digest, { i, s });
        expect(token).toMatch(/^[\w-]+$/);
        // JSON has no negative zero.
        expect(decodePageToken(token, digest)).toEqual({ d: digest, i, s: s === 0 ? 0 : s });
        expect(refusalOf(() => decodePageToken(token, digestOf(`${request}!`)))).toContain("pageToken");
      }),
    );
  });

  it("is refused if it is anything else", () => {
    const digest = digestOf("x");
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), fc.json().map(toToken)), (token) => {
        expect(refusalOf(() => decodePageToken(token, digest))).toContain("pageToken");
      }),
    );
    expect(refusalOf(() => decodePageToken("A".repeat(10_000), digest))).toContain("pageToken");
  });
});

const toToken = (json: string) => Buffer.from(json).toString("base64url");
