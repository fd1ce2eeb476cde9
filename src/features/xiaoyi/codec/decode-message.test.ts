import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nearMisses } from "../../../core/dialects/suite/arbitraries.ts";
import { toolsOf } from "../../../core/dialects/suite/join.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import { cases } from "../../../core/model/testing/exploring.ts";
import { type DecodedMessage, decodeMessageParams, tappedNotificationId } from "./decode-message.ts";

const XIAOYI = "urn:dragoman:ext:xiaoyi:v1";

function heard(parts: unknown, more: object = {}): DecodedMessage {
  const params = { id: "task-1", sessionId: "sess-1", message: { role: "user", parts }, ...more };
  return decodeMessageParams(params, {}, toolsOf().ids).value;
}

describe("a message", () => {
  it("is read into the context of its session", () => {
    expect(heard([{ kind: "text", text: "你好" }], { agentLoginSessionId: "" })).toEqual({
      taskId: "task-1",
      sessionId: "sess-1",
      loginSessionId: undefined,
      message: { messageId: "id-1", role: "ROLE_USER", contextId: "sess-1", parts: [{ text: "你好" }] },
      events: [],
      isTurn: true,
      pushId: undefined,
    });
  });

  it("keeps its id and the user's login", () => {
    const message = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "a" }] };
    const { loginSessionId, message: read } = heard([], { message, agentLoginSessionId: "login-1" });
    expect(loginSessionId).toBe("login-1");
    expect(read).toMatchObject({ messageId: "m", metadata: { [XIAOYI]: { agentLoginSessionId: "login-1" } } });
  });

  it.each([
    [
      { name: "a.pdf", mimeType: "application/pdf", uri: "https://x/a" },
      { url: "https://x/a", filename: "a.pdf" },
    ],
    [
      { name: "a.jpg", mimeType: "jpeg", uri: "https://x/a" },
      { url: "https://x/a", mediaType: "image/jpeg" },
    ],
    [
      { name: "a.txt", mimeType: "text/plain", bytes: "aGk=" },
      { raw: "aGk=", mediaType: "text/plain" },
    ],
    [{ uri: "https://x/a", bytes: "base64-encoded-content" }, { url: "https://x/a" }],
    [
      { mimeType: "strange", uri: "https://x/a" },
      { url: "https://x/a", mediaType: "strange" },
    ],
    [{ fileId: "f" }, { url: "urn:xiaoyi:file:f", metadata: { [XIAOYI]: { fileId: "f" } } }],
  ])("may be a file and nothing else: %j", (file, part) => {
    const { isTurn, message } = heard([{ kind: "file", file }]);
    expect(isTurn).toBe(true);
    expect(message.parts).toEqual([expect.objectContaining(part)]);
  });

  const system = { push_id: "push-1", device_type: "phone", app_ver: "1" };

  it.each([
    ["an object", { systemVariables: system, clientVariables: { modelName: "X" } }],
    ["a list of objects", { systemVariables: [{ push_id: "push-1" }, { device_type: "phone" }], memoryVariables: [] }],
    ["a list of names and values", { systemVariables: [{ name: "push_id", value: "push-1" }] }],
  ])("has variables as %s, without the push id", (_name, variables) => {
    const { message, pushId } = heard([
      { kind: "text", text: "a" },
      { kind: "data", data: { variables } },
    ]);
    expect(pushId).toBe("push-1");
    expect(message.parts).toEqual([{ text: "a" }]);
    expect(message.metadata).toMatchObject({ [XIAOYI]: { variables: { systemVariables: expect.anything() } } });
    expect(JSON.stringify(message)).not.toContain("push-1");
  });

  it("has variables beside it too", () => {
    const data = { variables: { systemVariables: system } };
    expect(heard([{ kind: "text", text: "a" }], { data })).toMatchObject({ pushId: "push-1" });
  });

  it("of variables alone is a turn without text", () => {
    const { isTurn, message } = heard([{ kind: "data", data: { variables: { clientVariables: { a: 1 } } } }]);
    expect(isTurn).toBe(true);
    expect(message.parts).toEqual([{ text: "" }]);
  });

  it("keeps data of any other kind", () => {
    const data = { userInputInfo: { statusInfo: [{ id: "deep", state: "on" }] } };
    const { isTurn, message } = heard([
      { kind: "data", data },
      { kind: "text", text: "go" },
    ]);
    expect(isTurn).toBe(true);
    expect(message.parts).toEqual([{ data }, { text: "go" }]);
  });
});

describe("events of the device", () => {
  const result = { header: { namespace: "Common", name: "UploadExeResult" }, payload: { outputs: { code: 0 } } };

  it("are no turn when they come alone, with or without variables", () => {
    for (const parts of [
      [{ kind: "data", data: { events: [result] } }],
      [{ kind: "data", data: { events: [result], variables: { systemVariables: {} } } }],
      [{ data: { variables: { systemVariables: {} } } }, { data: { events: [result] } }],
    ]) {
      const { events, isTurn, message } = heard(parts);
      expect(isTurn).toBe(false);
      expect(events).toEqual([{ namespace: "Common", name: "UploadExeResult", payload: { outputs: { code: 0 } } }]);
      expect(message.parts).toEqual([{ data: { events: [result] } }]);
    }
  });

  it("are a turn if they come with text", () => {
    const { events, isTurn } = heard([
      { kind: "text", text: "and?" },
      { kind: "data", data: { events: [result] } },
    ]);
    expect(isTurn).toBe(true);
    expect(events).toHaveLength(1);
  });

  it("have an older form", () => {
    const old = { intentName: "GetCurrentLocation", outputs: { code: 0 }, status: "ok" };
    const { events, isTurn } = heard([{ kind: "data", data: { events: [old] } }]);
    expect(isTurn).toBe(false);
    expect(events).toEqual([{ namespace: "Common", name: "UploadExeResult", payload: old }]);
  });

  it("tell which notification was tapped", () => {
    const tap = { header: { namespace: "Common", name: "Trigger" }, payload: { dataMap: { pushDataId: "p-1" } } };
    expect(tappedNotificationId(heard([{ kind: "data", data: { events: [tap] } }]).events)).toBe("p-1");
    expect(tappedNotificationId(heard([{ kind: "data", data: { events: [result] } }]).events)).toBeUndefined();
  });
});

describe("what is not a message", () => {
  it.each([
    [{}, "params.id"],
    [{ id: "t" }, "params.sessionId"],
    [{ id: "t", sessionId: "s" }, "params.message"],
    [{ id: "t", sessionId: "s", message: { parts: [] } }, "params.message.parts"],
    [{ id: "t", sessionId: "s", message: { parts: [{}] } }, "params.message.parts"],
    [{ id: "t", sessionId: "s", message: { parts: [{ text: "a", data: {} }] } }, "params.message.parts[0]"],
    [{ id: "t", sessionId: "s", message: { parts: [{ kind: "file", file: {} }] } }, "params.message.parts[0].file"],
    [{ id: 5, sessionId: "s", message: { parts: [{ text: "a" }] } }, "params.id"],
  ])("is refused: %j", (params, field) => {
    expect(() => decodeMessageParams(params, {}, toolsOf().ids)).toThrow(
      expect.objectContaining({ code: "INVALID_PARAMS", message: expect.stringContaining(field) }),
    );
  });

  it("may still be one without the parts that are of no known kind", () => {
    const parts = [{ kind: "hologram", hologram: { depth: 3 } }, { kind: "text", text: "a" }, { kind: "data" }];
    const { losses, value } = decodeMessageParams({ id: "t", sessionId: "s", message: { parts } }, {}, toolsOf().ids);
    expect(value.message.parts).toEqual([{ text: "a" }]);
    expect(losses.map(({ kind, path }) => `${path} ${kind}`)).toEqual([
      "params.message.parts[0] dropped",
      "params.message.parts[2] dropped",
    ]);
  });

  it("has the session of its envelope where it names none", () => {
    const params = { id: "t", message: { parts: [{ text: "a" }] } };
    const { value } = decodeMessageParams(params, {}, toolsOf().ids, "outer");
    expect(value).toMatchObject({ sessionId: "outer", message: { contextId: "outer" } });
  });

  it("of any kind is understood or refused", () => {
    const near = nearMisses(
      [
        "id",
        "sessionId",
        "message",
        "parts",
        "kind",
        "text",
        "file",
        "data",
        "uri",
        "bytes",
        "fileId",
        "events",
      ].concat([
        "variables",
        "systemVariables",
        "header",
        "namespace",
        "name",
        "payload",
        "push_id",
        "dataMap",
        "cardsInfo",
        "commands",
      ]),
      ["text", "file", "data", "reasoningText", "Common", "Trigger", "aGk=", "superlink://vassistant?text=a"],
    );
    fc.assert(
      fc.property(near, (params) => {
        try {
          const { value } = decodeMessageParams(params, { maxItems: 100 }, toolsOf().ids);
          expect(value.message.parts.length).toBeGreaterThan(0);
          tappedNotificationId(value.events);
        } catch (error) {
          if (!ProtocolError.is(error)) throw error;
        }
      }),
      { numRuns: cases(10_000) },
    );
  });
});
