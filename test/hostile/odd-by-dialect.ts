/** Requests of an older dialect that are odd. Some of them are legal; all of them get an answer that makes sense. */
import fc, { type Arbitrary } from "fast-check";
import { anyOf } from "./batches.ts";
import type { Params, RequestDialect } from "./dialect-requests.ts";
import type { HostileRequest, Known } from "./hostile-request.ts";
import { headerValue, oddJson, oddKey, oddText } from "./odd-requests.ts";
import { encodeAllWays } from "./refused-by-dialect.ts";

const metadata = fc.dictionary(oddKey, oddJson, { maxKeys: 4 });

/** Legal in form, with anything at all wherever anything is allowed. */
function legal(tongue: RequestDialect): Arbitrary<HostileRequest> {
  const values = fc.record({ text: oddText, data: oddJson, metadata, id: oddText });
  return anyOf(
    fc.tuple(tongue.valid, values).map(([params, odd]) => {
      const message = params.message as Params;
      const member = "content" in message ? "content" : "parts";
      const parts = tongue.part(odd.text, odd.data);
      return encodeAllWays(
        tongue,
        "legal but odd",
        JSON.stringify({
          ...params,
          ...("id" in params ? { id: odd.id, sessionId: odd.text } : undefined),
          message: { ...message, messageId: odd.id, contextId: odd.text, [member]: parts, metadata: odd.metadata },
          metadata: odd.metadata,
          "\u2713": odd.data,
        }),
      );
    }),
  );
}

function anything(tongue: RequestDialect): Arbitrary<HostileRequest> {
  const members = ["id", "message", "parts", "content", "request", "sessionId", "taskId", "role", "kind", "x"];
  return anyOf(
    fc
      .oneof(fc.object({ maxDepth: 3, key: fc.constantFrom(...members) }), fc.array(oddJson, { maxLength: 3 }))
      .map((params) => encodeAllWays(tongue, "any params", JSON.stringify(params) ?? "{}")),
  );
}

const HEADERS = [
  ...["a2a-extensions", "x-a2a-extensions", "idempotency-key", "last-event-id", "accept", "a2a-version"],
  ...["content-type", "host", "range", "upgrade", "cookie", "authorization", "if-none-match"],
];

function oddHeaders(tongue: RequestDialect): Arbitrary<HostileRequest> {
  const values = fc.oneof(headerValue, fc.constantFrom("*", ",,,,", "text/event-stream", "x".repeat(4_000), "0"));
  return anyOf(
    fc.tuple(tongue.valid, fc.constantFrom(...HEADERS), values).map(([params, name, value]) => {
      const requests = encodeAllWays(tongue, "odd headers", JSON.stringify(params));
      // Another version, or a host that is not ours, is another's to answer.
      const lane = name === "a2a-version" || name === "host" ? "server" : tongue.lane;
      return requests.map((request) => ({
        ...request,
        lane,
        raw: { ...request.raw, headers: { ...request.raw.headers, [name]: value } },
      }));
    }),
  );
}

function conversation(tongue: RequestDialect, known: () => Known): Arbitrary<HostileRequest> {
  return anyOf(
    fc.tuple(tongue.valid, fc.integer({ min: -2, max: 40 })).map(([params, cursor]) => {
      const { ended, waiting } = known();
      const at = { "last-event-id": String(cursor) };
      const message = { ...(params.message as Params) };
      const member = "content" in message ? "content" : "parts";
      const again = { ...params, message: { ...message, [member]: tongue.part("input again?", null) } };
      return [
        tongue.subscribe(waiting, at),
        tongue.subscribe(ended, at),
        tongue.subscribe(ended),
        tongue.get(waiting),
        ...encodeAllWays(tongue, "talk to the waiting task", JSON.stringify(tongue.toTask(again, waiting))),
      ];
    }),
  );
}

export function oddIn(tongue: RequestDialect, known: () => Known): Arbitrary<HostileRequest> {
  return fc.oneof(
    { weight: 10, arbitrary: legal(tongue) },
    { weight: 6, arbitrary: anything(tongue) },
    { weight: 6, arbitrary: oddHeaders(tongue) },
    { weight: 2, arbitrary: conversation(tongue, known) },
  );
}
