import { type Fields, fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import { type Check, check, checkOver, ensure, fail, notShown } from "../check.ts";
import { type CheckContext, historyOf, requireTask, showError } from "../check-context.ts";
import { parseJson, sameJson, show } from "../json.ts";
import { isError } from "../peers/errors.ts";
import type { FullResponse } from "../peers/http-client.ts";
import type { JsonRpcPeer } from "../peers/peer.ts";

/** Sends parts and returns them as the server stored them. */
function roundTripParts(context: CheckContext, parts: readonly Fields[], what: string): Promise<readonly unknown[]> {
  return context.withoutValidation(async () => {
    const message = context.message("tck-complete-task", { parts });
    const answer = await context.call("SendMessage", { message });
    if (!answer.ok) {
      if (isError(answer.error, "CONTENT_TYPE_NOT_SUPPORTED", context.peer.binding, context.version))
        notShown(`the agent does not take ${what}`);
      fail(`a message with ${what} was refused: ${showError(answer.error)}`);
    }
    const { id } = requireTask(context.readOutcome(answer.result));
    const stored = historyOf(await context.get(id)).find(({ messageId }) => messageId === message.messageId);
    return stored === undefined ? notShown("the server does not keep a history") : listOf(stored.parts);
  });
}

const BYTES = Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte)).toString("base64");

export const ENCODING_CHECKS: readonly Check<CheckContext>[] = [
  check("empty-content", "DM-PART-002", async (context) => {
    const text = { text: "tck-complete-task (conformance check)" };
    const stored = await roundTripParts(context, [text, { text: "" }], "an empty text");
    ensure(fieldsOf(stored[1]).text === "", `an empty text came back as ${show(stored[1])}`);
    if (!acceptsMediaType(context, "application/json")) return;
    const values = await roundTripParts(context, [text, { data: null, mediaType: "application/json" }], "data");
    const part = fieldsOf(values[1]);
    ensure("data" in part && part.data === null, `null as data came back as ${show(values[1])}`);
  }),
  check("bytes-come-back", "DM-BYTES-001", async (context) => {
    const mediaType = context.declared.inputModes.find((mode) => mode.includes("/") && !mode.includes("*"));
    const anyType = "application/octet-stream";
    if (mediaType === undefined && !acceptsMediaType(context, anyType)) notShown("the card accepts no files");
    const parts = [
      { text: "tck-complete-task (conformance check)" },
      { raw: BYTES, filename: "bytes.bin", mediaType: mediaType ?? anyType },
    ];
    const stored = await roundTripParts(context, parts, "bytes");
    const raw = fieldsOf(stored[1]).raw;
    const same = typeof raw === "string" && sameJson(Buffer.from(raw, "base64").toString("base64"), BYTES);
    ensure(same, `256 bytes came back as ${show(stored[1])}`);
  }),
];

function acceptsMediaType(context: CheckContext, mediaType: string): boolean {
  return context.declared.inputModes.some((mode) => mode === mediaType || mode === "*/*");
}

/** Features that only 0.3 has. */
export const LEGACY_CHECKS: readonly Check<CheckContext>[] = [
  checkOver(["HTTP+JSON"], "old-subscribe-verbs", "V03-SUB-001", async (context, peer) => {
    context.requireStreaming();
    // An unknown task is enough: a server that supports the verb answers "not found" and opens no stream.
    for (const method of ["GET", "POST"]) {
      const body = method === "POST" ? "{}" : undefined;
      const { status, text } = await peer.request(method, "/v1/tasks/conformance-unknown:subscribe", body);
      ensure(status !== 405 && status !== 501, `${method} …:subscribe was answered with ${status}`);
      ensure(status !== 404 || namesTask(text), `${method} …:subscribe is not a route`);
    }
  }),
  checkOver(["HTTP+JSON"], "old-push-bodies", "V03-PUSH-001", async (context, peer) => {
    context.requirePush();
    const { id } = await context.openTask();
    const url = "https://webhook.conformance.example/notify";
    const config = {
      name: `tasks/${id}/pushNotificationConfigs/conformance`,
      pushNotificationConfig: { id: "conformance", url },
    };
    const bodies = { bare: config, enveloped: { parent: `tasks/${id}`, configId: "conformance", config } };
    for (const [form, body] of Object.entries(bodies)) {
      const path = `/v1/tasks/${encodeURIComponent(id)}/pushNotificationConfigs`;
      const { status, text } = await peer.request("POST", path, JSON.stringify(body));
      ensure(status >= 200 && status < 300, `a push config in its ${form} form was answered with ${status} ${text}`);
    }
  }),
  checkOver(["JSONRPC"], "old-objects-have-kinds", "V03-KIND-001", async (context) => {
    const answer = await context.call("SendMessage", { message: context.message("tck-complete-task") });
    if (!answer.ok) notShown("a simple message was refused");
    const kind = Object(answer.wire).kind;
    ensure(kind === "task" || kind === "message", `the answer's kind is ${JSON.stringify(kind)}`);
  }),
];

/** Distinguishes "task not found" from "route not found". */
function namesTask(text: string): boolean {
  return /task/i.test(text);
}

/** The JSON-RPC response to an invalid body. */
function parseResponse(answer: FullResponse, what: string): Readonly<Record<string, unknown>> {
  const value = parseJson(answer.text);
  if (!isObject(value))
    fail(`${what} was answered with ${answer.status} and no JSON-RPC response: ${show(answer.text)}`);
  return value;
}

async function expectCode(
  peer: JsonRpcPeer,
  what: string,
  body: string,
  codes: readonly number[],
  ids: readonly unknown[],
): Promise<void> {
  const response = parseResponse(await peer.post(body), what);
  const code = fieldsOf(response.error).code;
  const fits = typeof code === "number" && codes.includes(code);
  ensure(fits, `${what} was answered with the code ${show(code)}, not ${codes.join(" or ")}`);
  ensure(ids.includes(response.id), `${what} was answered with the id ${show(response.id)}`);
  ensure(response.jsonrpc === "2.0", `${what} was answered with jsonrpc ${show(response.jsonrpc)}`);
}

const UNKNOWN_TASK = "conformance-unknown-task";

export const ENVELOPE_CHECKS: readonly Check<CheckContext>[] = [
  checkOver(["JSONRPC"], "no-json", "JSONRPC-ERR-001", (_context, peer) =>
    expectCode(peer, "a torn JSON text", '{"jsonrpc": "2.0", "id": 7, "method"', [-32700], [null]),
  ),
  checkOver(["JSONRPC"], "no-request", "JSONRPC-ERR-001", async (_context, peer) => {
    const method = peer.methodOf("GetTask");
    const params = { id: UNKNOWN_TASK };
    const envelopes: readonly (readonly [string, unknown])[] = [
      ["a request without a method", { jsonrpc: "2.0", id: 7, params }],
      ["a request of JSON-RPC 1.0", { jsonrpc: "1.0", id: 7, method, params }],
      ["a request without jsonrpc", { id: 7, method, params }],
      ["a method that is a number", { jsonrpc: "2.0", id: 7, method: 7, params }],
      ["an id that is an object", { jsonrpc: "2.0", id: { seven: 7 }, method, params }],
    ];
    for (const [what, envelope] of envelopes) {
      await expectCode(peer, what, JSON.stringify(envelope), [-32600], [7, null]);
    }
    // Neither specification defines whether the envelope or only its content is invalid then.
    const text = JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: "text" });
    await expectCode(peer, "a request with params that are text", text, [-32600, -32602], [7, null]);
  }),
  checkOver(["JSONRPC"], "no-method", "JSONRPC-ERR-001", async (_context, peer) => {
    for (const method of ["ConformanceUnknown", "toString", ""]) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: {} });
      await expectCode(peer, `the method ${show(method)}`, body, [-32601], [7]);
    }
  }),
  checkOver(["JSONRPC"], "no-params", "JSONRPC-ERR-001", async (_context, peer) => {
    const method = peer.methodOf("GetTask");
    for (const [what, params] of [
      ["GetTask without an id", {}],
      ["GetTask with an id that is a number", { id: 7 }],
    ] as const) {
      await expectCode(peer, what, JSON.stringify({ jsonrpc: "2.0", id: 7, method, params }), [-32602], [7]);
    }
  }),
  checkOver(["JSONRPC"], "envelope-errors-are-responses", "JSONRPC-ERR-005", async (_context, peer) => {
    const method = peer.methodOf("GetTask");
    for (const [what, body, code] of [
      ["a torn JSON text", '{"jsonrpc": "2.0", "id": 7, "method"', -32700],
      ["a request without a method", '{"jsonrpc": "2.0", "id": 7, "params": {}}', -32600],
      ["an unknown method without an id", '{"jsonrpc": "2.0", "method": "ConformanceUnknown", "params": {}}', -32601],
      ["GetTask without parameters and id", `{"jsonrpc": "2.0", "method": "${method}", "params": {}}`, -32602],
    ] as const) {
      const answer = await peer.post(body);
      ensure(answer.status === 200, `${what} was answered with HTTP ${answer.status}, not 200`);
      const { code: answered } = fieldsOf(parseResponse(answer, what).error);
      ensure(answered === code, `${what} was answered with the code ${show(answered)}, not ${code}`);
    }
  }),
  checkOver(["JSONRPC"], "ids-come-back", "JSONRPC-FMT-001", async (_context, peer) => {
    const method = peer.methodOf("GetTask");
    for (const id of ["text", "", 0, 7]) {
      const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: { id: UNKNOWN_TASK } });
      const response = parseResponse(await peer.post(body), `a request with the id ${show(id)}`);
      ensure(response.id === id, `the id ${show(id)} came back as ${show(response.id)}`);
    }
  }),
  checkOver(["HTTP+JSON"], "no-route", "HTTP_JSON-URL-001", async (context, peer) => {
    const prefix = context.version === "1.0" ? "" : "/v1";
    const { status } = await peer.request("GET", `${prefix}/conformance/unknown`, undefined);
    ensure(status === 404 || status === 405, `a path that is not a route was answered with ${status}`);
  }),
  checkOver(["HTTP+JSON"], "no-json-body", "HTTP_JSON-URL-001", async (context, peer) => {
    const prefix = context.version === "1.0" ? "" : "/v1";
    for (const body of ['{"message":', '"text"', "[]"]) {
      const { status, text } = await peer.request("POST", `${prefix}/message:send`, body);
      ensure(status >= 400 && status < 500, `the body ${show(body)} was answered with ${status} ${show(text)}`);
    }
  }),
  checkOver(["GRPC"], "no-message-bytes", "GRPC-SVC-002", async (_context, peer) => {
    const answer = await peer.unary("SendMessage", Uint8Array.of(0x0a, 0xff, 0xff, 0x01, 0x00));
    if (answer.ok) fail("bytes that are not a message were accepted");
  }),
  checkOver(["GRPC"], "no-rpc-method", "GRPC-SVC-002", async (context, peer) => {
    const answer = await peer.unary("ConformanceUnknown", new Uint8Array());
    if (answer.ok) fail("a method that does not exist was answered");
    context.checkError("METHOD_NOT_FOUND", answer.error, "ConformanceUnknown");
  }),
];
