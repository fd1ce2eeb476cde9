import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readMessage } from "./message.ts";

describe("messages of DingTalk", () => {
  it("are read without an exception, whatever they are", () => {
    const text = fc.constantFrom("1", "2", "text", "richText", "file", "cid");
    const value = fc.oneof(fc.jsonValue(), text);
    const keys = ["msgId", "senderStaffId", "senderNick", "conversationType", "conversationId", "msgtype", "createAt"];
    const message = fc.dictionary(fc.constantFrom(...keys, "text", "content", "atUsers", "sessionWebhook"), value);
    const content = fc.record({ content: fc.record({ richText: fc.array(value) }) }, { requiredKeys: [] });
    const data = fc.oneof(
      fc.string(),
      fc
        .tuple(message, content)
        .map((parts) => JSON.stringify({ msgId: "m", senderId: "s", ...parts[0], ...parts[1] })),
    );
    fc.assert(
      fc.property(data, (given) => {
        const read = readMessage(given);
        expect(typeof (read?.text ?? "")).toBe("string");
        expect(typeof (read?.room ?? "")).toBe("string");
      }),
    );
  });
});
