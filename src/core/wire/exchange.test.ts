import { describe, expect, it } from "vitest";
import { isStreamReply, jsonReply } from "./exchange.ts";

describe("replies", () => {
  it("builds a JSON reply around text", () => {
    expect(jsonReply(200, "{}")).toEqual({
      status: 200,
      headers: { "content-type": "application/json", "cache-control": "private, no-store" },
      body: "{}",
    });
    expect(jsonReply(404, "{}", { "content-type": "application/problem+json", vary: "accept" }).headers).toEqual({
      "cache-control": "private, no-store",
      "content-type": "application/problem+json",
      vary: "accept",
    });
  });

  it("tells streams from full replies", () => {
    expect(isStreamReply(jsonReply(200, "{}"))).toBe(false);
    expect(isStreamReply({ status: 200, headers: {}, frames: (async function* () {})() })).toBe(true);
  });
});
