import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readOutputEvent } from "./output.ts";

describe("readOutputEvent", () => {
  it.each([
    ['{"status":"working"}', { kind: "status", state: "TASK_STATE_WORKING", message: undefined }],
    ['{"status":"input-required"}', { kind: "status", state: "TASK_STATE_INPUT_REQUIRED", message: undefined }],
    [
      '{"status":"Loading"}',
      { kind: "status", state: "TASK_STATE_WORKING", message: { parts: [{ text: "Loading" }] } },
    ],
    [
      '{"status":{"state":"TASK_STATE_FAILED","message":"no"}}',
      { kind: "status", state: "TASK_STATE_FAILED", message: { parts: [{ text: "no" }] } },
    ],
    [
      '{"inputRequired":{"parts":[{"text":"which?"}]}}',
      { kind: "status", state: "TASK_STATE_INPUT_REQUIRED", message: { parts: [{ text: "which?" }] } },
    ],
    [' { "message" : "hi" }\r\n', { kind: "message", message: { parts: [{ text: "hi" }] } }],
    ['{"artifact":{"name":"n","text":"t"}}', { kind: "artifact", options: { name: "n", parts: [{ text: "t" }] } }],
    [
      '{"artifact":{"artifactId":"i","data":null,"append":true}}',
      { kind: "artifact", options: { artifactId: "i", parts: [{ data: null }], append: true } },
    ],
    [
      '{"artifact":{"parts":[{"raw":"aGk=","filename":"a.txt"}]}}',
      { kind: "artifact", options: { parts: [{ raw: "aGk=", filename: "a.txt" }] } },
    ],
  ])("reads %s", (line, event) => {
    expect(readOutputEvent(line)).toEqual(event);
  });

  it.each([
    "plain text",
    '{"status":200}',
    '{"status":"working","time":1}',
    '{"artifact":{"parts":[]}}',
    '{"artifact":{"parts":[{"text":"a","url":"b"}]}}',
    '{"artifact":{"name":"nothing in it"}}',
    '{"message":{"level":30}}',
    '{"message":"cut off',
    '["status"]',
    '{"other":"key"}',
  ])("leaves %s as text", (line) => {
    expect(readOutputEvent(line)).toBeUndefined();
  });

  it("never throws", () => {
    fc.assert(
      fc.property(fc.constantFrom("status", "artifact", "inputRequired", "message"), fc.json(), (key, value) => {
        readOutputEvent(`{"${key}":${value}}`);
      }),
    );
  });
});
