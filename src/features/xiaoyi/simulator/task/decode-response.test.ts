import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isObject } from "../../../../core/model/json.ts";
import { DecodeError } from "../json.ts";
import { decodeResponse, findDataFault } from "./decode-response.ts";

test("whatever comes is read or refused in one way", () => {
  const parts = fc.record({
    kind: fc.constantFrom("text", "reasoningText", "data", "file"),
    text: fc.string(),
    data: fc.object(),
  });
  const result = fc.record(
    {
      kind: fc.constantFrom("status-update", "artifact-update", "other"),
      final: fc.oneof(fc.boolean(), fc.jsonValue()),
      append: fc.boolean(),
      lastChunk: fc.boolean(),
      taskId: fc.oneof(fc.string(), fc.jsonValue()),
      artifact: fc.oneof(fc.record({ artifactId: fc.string(), parts: fc.array(parts) }), fc.jsonValue()),
      status: fc.oneof(fc.record({ state: fc.constantFrom("working", "done") }), fc.jsonValue()),
    },
    { requiredKeys: [] },
  );
  const error = fc.oneof(
    fc.record({ code: fc.oneof(fc.integer(), fc.string()), message: fc.string() }),
    fc.jsonValue(),
  );
  const response = fc.record(
    { jsonrpc: fc.constant("2.0"), id: fc.jsonValue(), result, error },
    { requiredKeys: ["jsonrpc"] },
  );
  fc.assert(
    fc.property(response, (value) => {
      try {
        expect(["update", "answer", "error"]).toContain(decodeResponse(value).kind);
      } catch (fault) {
        expect(fault).toBeInstanceOf(DecodeError);
      }
    }),
  );
});

describe("data parts", () => {
  const header = { namespace: "Command", name: "Deeplink" };
  const chips = (content: unknown) => ({ chipsInfo: { displayChips: { chipsList: [{ content }] } } });

  test.each([
    ["a command", { commands: [{ header, payload: { url: "https://example.com" } }] }],
    ["a list of cards", { cardsInfo: [{ cardName: "a", cardData: { items: [] }, displayType: "EmbedMarkdown" }] }],
    ["a single card", { cardsInfo: { cardName: "a", cardData: {} } }],
    ["a chip", chips("superlink://vassistant?text=hello&startmode=recognize")],
    ["a reference", { reference: { items: [{ params: {}, card: { type: "leftPictureRightText", params: {} } }] } }],
    ["something else", { anything: 1 }],
  ])("%s is shown", (_what, data) => {
    expect(findDataFault(data)).toBeUndefined();
  });

  test.each([
    ["commands is not a list", { commands: {} }],
    ["A command needs", { commands: [{ header: { name: "x" }, payload: {} }] }],
    ["A card needs", { cardsInfo: [{ cardName: "x" }] }],
    ["more than 20 cards", { cardsInfo: Array.from({ length: 21 }, () => ({ cardName: "x", cardData: {} })) }],
    ["is not a list", { chipsInfo: {} }],
    ["A chip needs", chips(1)],
    ["more than 64 characters", chips("x".repeat(65))],
    ["reference.items", { reference: [] }],
    ["A reference needs", { reference: { items: [{}] } }],
  ])("%s: %j", (why, data) => {
    expect(findDataFault(data)).toContain(why);
  });

  test("nothing makes it fail otherwise", () => {
    const names = fc.constantFrom("commands", "cardsInfo", "chipsInfo", "reference", "other");
    fc.assert(
      fc.property(fc.dictionary(names, fc.jsonValue()), (data) => {
        if (isObject(data)) findDataFault(data);
      }),
    );
  });
});
