import type { InterfaceCheck } from "../check.ts";
import { fieldsOf, isObject, show } from "../json.ts";
import { ensure, fail } from "../outcome.ts";
import type { WholeAnswer } from "../peers/http-client.ts";
import type { GrpcPeer, HttpPeer, JsonRpcPeer } from "../peers/peer.ts";
import type { Scene } from "../scene.ts";

function jsonRpcOf({ peer }: Scene): JsonRpcPeer {
  return peer.binding === "JSONRPC" ? peer : fail("this is a check of JSON-RPC");
}

function httpOf({ peer }: Scene): HttpPeer {
  return peer.binding === "HTTP+JSON" ? peer : fail("this is a check of HTTP+JSON");
}

function grpcOf({ peer }: Scene): GrpcPeer {
  return peer.binding === "GRPC" ? peer : fail("this is a check of gRPC");
}

/** The response to a body that is wrong in some way. */
function responseOf(answer: WholeAnswer, what: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(answer.text);
  } catch {
    value = undefined;
  }
  if (!isObject(value))
    fail(`${what} was answered with ${answer.status} and no JSON-RPC response: ${show(answer.text)}`);
  return value;
}

async function expectCode(
  scene: Scene,
  what: string,
  body: string | Uint8Array,
  codes: readonly number[],
  ids: readonly unknown[],
): Promise<void> {
  const response = responseOf(await jsonRpcOf(scene).post(body), what);
  const told = fieldsOf(response.error).code;
  const fits = typeof told === "number" && codes.includes(told);
  ensure(fits, `${what} was answered with the code ${show(told)}, not ${codes.join(" or ")}`);
  ensure(ids.includes(response.id), `${what} was answered with the id ${show(response.id)}`);
  ensure(response.jsonrpc === "2.0", `${what} was answered with jsonrpc ${show(response.jsonrpc)}`);
}

const UNKNOWN_TASK = "conformance-unknown-task";

export const ENVELOPE_CHECKS: readonly InterfaceCheck[] = [
  {
    name: "no-json",
    shows: ["JSONRPC-ERR-001"],
    bindings: ["JSONRPC"],
    run: (scene) => expectCode(scene, "a torn JSON text", '{"jsonrpc": "2.0", "id": 7, "method"', [-32700], [null]),
  },
  {
    name: "no-request",
    shows: ["JSONRPC-ERR-001"],
    bindings: ["JSONRPC"],
    async run(scene) {
      const method = jsonRpcOf(scene).methodOf("GetTask");
      const params = { id: UNKNOWN_TASK };
      const envelopes: readonly (readonly [string, unknown])[] = [
        ["a request without a method", { jsonrpc: "2.0", id: 7, params }],
        ["a request of JSON-RPC 1.0", { jsonrpc: "1.0", id: 7, method, params }],
        ["a request without jsonrpc", { id: 7, method, params }],
        ["a method that is a number", { jsonrpc: "2.0", id: 7, method: 7, params }],
        ["an id that is an object", { jsonrpc: "2.0", id: { seven: 7 }, method, params }],
      ];
      for (const [what, envelope] of envelopes) {
        await expectCode(scene, what, JSON.stringify(envelope), [-32600], [7, null]);
      }
      // Neither specification says whether the envelope is wrong then, or only what is in it.
      const text = JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: "text" });
      await expectCode(scene, "a request with params that are text", text, [-32600, -32602], [7, null]);
    },
  },
  {
    name: "no-method",
    shows: ["JSONRPC-ERR-001"],
    bindings: ["JSONRPC"],
    async run(scene) {
      for (const method of ["ConformanceUnknown", "toString", ""]) {
        const body = JSON.stringify({ jsonrpc: "2.0", id: 7, method, params: {} });
        await expectCode(scene, `the method ${show(method)}`, body, [-32601], [7]);
      }
    },
  },
  {
    name: "no-params",
    shows: ["JSONRPC-ERR-001"],
    bindings: ["JSONRPC"],
    async run(scene) {
      const method = jsonRpcOf(scene).methodOf("GetTask");
      for (const [what, params] of [
        ["GetTask without an id", {}],
        ["GetTask with an id that is a number", { id: 7 }],
      ] as const) {
        await expectCode(scene, what, JSON.stringify({ jsonrpc: "2.0", id: 7, method, params }), [-32602], [7]);
      }
    },
  },
  {
    name: "envelope-errors-are-responses",
    shows: ["JSONRPC-ERR-005"],
    bindings: ["JSONRPC"],
    async run(scene) {
      const method = jsonRpcOf(scene).methodOf("GetTask");
      for (const [what, body, code] of [
        ["a torn JSON text", '{"jsonrpc": "2.0", "id": 7, "method"', -32700],
        ["a request without a method", '{"jsonrpc": "2.0", "id": 7, "params": {}}', -32600],
        ["an unknown method without an id", '{"jsonrpc": "2.0", "method": "ConformanceUnknown", "params": {}}', -32601],
        ["GetTask without parameters and id", `{"jsonrpc": "2.0", "method": "${method}", "params": {}}`, -32602],
      ] as const) {
        const answer = await jsonRpcOf(scene).post(body);
        ensure(answer.status === 200, `${what} was answered with HTTP ${answer.status}, not 200`);
        const { code: answered } = fieldsOf(responseOf(answer, what).error);
        ensure(answered === code, `${what} was answered with the code ${show(answered)}, not ${code}`);
      }
    },
  },
  {
    name: "ids-come-back",
    shows: ["JSONRPC-FMT-001"],
    bindings: ["JSONRPC"],
    async run(scene) {
      const method = jsonRpcOf(scene).methodOf("GetTask");
      for (const id of ["text", "", 0, 7]) {
        const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: { id: UNKNOWN_TASK } });
        const response = responseOf(await jsonRpcOf(scene).post(body), `a request with the id ${show(id)}`);
        ensure(response.id === id, `the id ${show(id)} came back as ${show(response.id)}`);
      }
    },
  },
  {
    name: "no-route",
    shows: ["HTTP_JSON-URL-001"],
    bindings: ["HTTP+JSON"],
    async run(scene) {
      const prefix = scene.version === "1.0" ? "" : "/v1";
      const { status } = await httpOf(scene).request("GET", `${prefix}/conformance/unknown`, undefined);
      ensure(status === 404 || status === 405, `a path that is no route was answered with ${status}`);
    },
  },
  {
    name: "no-json-body",
    shows: ["HTTP_JSON-URL-001"],
    bindings: ["HTTP+JSON"],
    async run(scene) {
      const prefix = scene.version === "1.0" ? "" : "/v1";
      for (const body of ['{"message":', '"text"', "[]"]) {
        const { status, text } = await httpOf(scene).request("POST", `${prefix}/message:send`, body);
        ensure(status >= 400 && status < 500, `the body ${show(body)} was answered with ${status} ${show(text)}`);
      }
    },
  },
  {
    name: "no-message-bytes",
    shows: ["GRPC-SVC-002"],
    bindings: ["GRPC"],
    async run(scene) {
      const answer = await grpcOf(scene).unary("SendMessage", Uint8Array.of(0x0a, 0xff, 0xff, 0x01, 0x00));
      if (answer.ok) fail("bytes that are no message were taken");
    },
  },
  {
    name: "no-rpc-method",
    shows: ["GRPC-SVC-002"],
    bindings: ["GRPC"],
    async run(scene) {
      const answer = await grpcOf(scene).unary("ConformanceUnknown", new Uint8Array());
      if (answer.ok) fail("a method that does not exist was answered");
      scene.judged("METHOD_NOT_FOUND", answer.error, "ConformanceUnknown");
    },
  },
];
