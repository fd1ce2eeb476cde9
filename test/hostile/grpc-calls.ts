/** Hostile calls: those that must be refused and leave nothing behind, and those that are merely odd. */
import { gzipSync } from "node:zlib";
import fc, { type Arbitrary } from "fast-check";
import type { Plain, PublishedMethod } from "../support/published-protos.ts";
import { anyOf } from "./batches.ts";
import type { GrpcDialect } from "./grpc-dialects.ts";
import { field, framed, type HostileCall } from "./grpc-request.ts";
import type { Known } from "./hostile-request.ts";
import { headerValue, oddJson, oddText } from "./odd-requests.ts";
import { oddId, wrongWebhook } from "./refused-requests.ts";

/** What is made for one service and one agent. */
export interface Aim {
  readonly tongue: GrpcDialect;
  readonly agent: string;
  readonly known: () => Known;
}

/** A message that arrives, for the dialect to judge. */
function refusedBy({ tongue, agent }: Aim, label: string, { path }: PublishedMethod, message: Uint8Array): HostileCall {
  return { label, path, body: framed(message), headers: tongue.headers(agent), by: "dialect", must: "be refused" };
}

const encoded = ({ tongue, agent }: Aim, { encode }: PublishedMethod, request: Plain) =>
  encode(tongue.addressed(agent, request));

const sent = (aim: Aim, label: string, request: Plain) =>
  aim.tongue.sends.map((method) => refusedBy(aim, label, method, encoded(aim, method, request)));

/** Bytes that may by chance be a message, but never one that says enough. */
function garbage(aim: Aim): Arbitrary<HostileCall> {
  const { sends, aboutTasks } = aim.tongue;
  return fc
    .tuple(fc.uint8Array({ maxLength: 60 }), fc.constantFrom(...sends, ...aboutTasks))
    .map(([bytes, method]) => refusedBy(aim, "garbage", method, bytes));
}

function wrong(aim: Aim): Arbitrary<HostileCall> {
  return anyOf(
    fc
      .tuple(aim.tongue.valid, fc.constantFrom(...aim.tongue.wrong))
      .map(([request, [label, fields]]) =>
        aim.tongue.sends.map((method) =>
          refusedBy(aim, label, method, Buffer.concat([encoded(aim, method, request), fields])),
        ),
      ),
  );
}

/** A `Struct`, made from the inside out: the usual libraries refuse to write what is nested so deeply. */
function nestedStruct(levels: number, lists: boolean): Buffer {
  const member = (inner: Buffer) => field(1, Buffer.concat([field(1, "a"), field(2, inner)]));
  let value: Buffer = Buffer.from([0x20, 0x01]);
  for (let at = 0; at < levels; at++) value = lists ? field(6, field(1, value)) : field(5, member(value));
  return member(value);
}

function deep(aim: Aim): Arbitrary<HostileCall> {
  return anyOf(
    fc.tuple(aim.tongue.valid, fc.integer({ min: 65, max: 1_000 }), fc.boolean()).map(([request, levels, lists]) =>
      aim.tongue.sends.map((method) => {
        const metadata = field(aim.tongue.metadataField, nestedStruct(levels, lists));
        return refusedBy(aim, "deep values", method, Buffer.concat([encoded(aim, method, request), metadata]));
      }),
    ),
  );
}

function crowded(aim: Aim): Arbitrary<HostileCall> {
  return anyOf(
    fc
      .tuple(aim.tongue.valid, fc.integer({ min: 1_001, max: 3_000 }))
      .map(([request, count]) =>
        sent(aim, "thousands of parts", aim.tongue.withParts(request, Array(count).fill({ text: "" }))),
      ),
  );
}

function aboutTasks(aim: Aim): Arbitrary<HostileCall> {
  const { tongue, known } = aim;
  const [, cancel] = tongue.aboutTasks as readonly [PublishedMethod, PublishedMethod];
  const create = tongue.service.CreateTaskPushNotificationConfig as PublishedMethod;
  return anyOf(
    fc
      .tuple(tongue.valid, oddId, fc.string({ minLength: 1 }), wrongWebhook)
      .map(([request, id, contextId, url]) => [
        ...sent(aim, "to an unknown task", tongue.toTask(request, id)),
        ...sent(aim, "to an ended task", tongue.toTask(request, known().ended)),
        ...sent(aim, "mismatched context", tongue.toTask(request, known().waiting, contextId)),
        ...tongue.aboutTasks.map((method) =>
          refusedBy(aim, "unknown task", method, encoded(aim, method, tongue.named(id))),
        ),
        ...tongue.aboutTasks.map((method) => refusedBy(aim, "no task", method, encoded(aim, method, {}))),
        refusedBy(aim, "cancel ended", cancel, encoded(aim, cancel, tongue.named(known().ended))),
        refusedBy(
          aim,
          "webhook nowhere",
          create,
          encoded(aim, create, tongue.push(known().waiting, typeof url === "string" ? url : "")),
        ),
      ]),
  );
}

/** Two megabytes, where a quarter of one is allowed. */
const BOMB = gzipSync(Buffer.alloc(2_000_000));

/** What does not arrive as one message, or not as gRPC at all. */
function misframed({ tongue, agent }: Aim): Arbitrary<HostileCall> {
  const headers = tongue.headers(agent);
  return anyOf(
    fc
      .tuple(tongue.valid, fc.constantFrom(...tongue.sends), fc.integer({ min: 1, max: 200 }), headerValue)
      .map(([request, method, size, junk]) => {
        const message = method.encode(tongue.addressed(agent, request));
        const whole = framed(message);
        const call = (label: string, body: Buffer, more: HostileCall["headers"] = {}, broken = false): HostileCall => ({
          ...{ label, path: method.path, body, headers: { ...headers, ...more } },
          ...{ by: "carrier", must: "be refused", broken },
        });
        const noise = Buffer.from(junk.padEnd(4, "x"), "latin1");
        return [
          call("nothing at all", Buffer.alloc(0)),
          call("half a length", whole.subarray(0, size % 5)),
          call("half a message", whole.subarray(0, Math.min(4 + size, whole.length - 1))),
          call("a length too large", framed(message, message.length + size)),
          call("a length beyond the limit", framed(message, 0xffffffff - size)),
          call("too large", framed(Buffer.alloc(260_000 + size))),
          call("two messages", Buffer.concat([whole, whole])),
          call("compressed by gzip, but not really", framed(noise, noise.length, 1), { "grpc-encoding": "gzip" }, true),
          call("compressed by an unknown", framed(message, message.length, 1), { "grpc-encoding": "snappy" }),
          call("a bomb", framed(BOMB, undefined, 1), { "grpc-encoding": "gzip" }),
          call("another type", whole, { "content-type": "application/json" }),
          call("a time that is none", whole, { "grpc-timeout": "soon" }, true),
          { ...call("an unknown method", whole), path: `${method.path}x` },
          { ...call("an unknown package", whole), path: `/a2a.v9${method.path}` },
          { ...call("no path", whole), path: "/" },
          { ...call("a name of every object", whole), path: "/__proto__/constructor" },
          { ...call("left within the message", whole.subarray(0, -1)), by: "nobody" },
          { ...call("left within the length", whole.subarray(0, 3)), by: "nobody" },
        ];
      }),
  );
}

function refusedMetadata(aim: Aim): Arbitrary<HostileCall> {
  const { headers } = aim.tongue;
  const more: readonly Readonly<Record<string, string>>[] =
    aim.tongue.name === "a2a.v1" ? [] : [{ "a2a-version": "0.3" }, { "a2a-version": "2.0" }, { "a2a-version": "x" }];
  if (more.length === 0) return wrong(aim);
  return anyOf(
    fc.tuple(aim.tongue.valid, fc.constantFrom(...more)).map(([request, extra]) =>
      sent(aim, "another version", request).map((call) => ({
        ...call,
        headers: { ...headers(aim.agent), ...extra },
      })),
    ),
  );
}

export function refusedCalls(aim: Aim): Arbitrary<HostileCall> {
  return fc.oneof(
    { weight: 10, arbitrary: garbage(aim) },
    { weight: 20, arbitrary: wrong(aim) },
    { weight: 3, arbitrary: deep(aim) },
    { weight: 1, arbitrary: crowded(aim) },
    { weight: 14, arbitrary: aboutTasks(aim) },
    { weight: 14, arbitrary: misframed(aim) },
    { weight: 2, arbitrary: refusedMetadata(aim) },
  );
}

const answered = (call: HostileCall): HostileCall => ({ ...call, must: "be answered" });

/** A valid message with bytes changed, taken out or put in. */
function mutated(aim: Aim): Arbitrary<HostileCall> {
  return fc
    .tuple(aim.tongue.valid, fc.constantFrom(...aim.tongue.sends), fc.nat(), fc.uint8Array({ maxLength: 4 }), fc.nat(4))
    .map(([request, method, place, bytes, taken]) => {
      const message = encoded(aim, method, request);
      const at = place % message.length;
      const changed = Buffer.concat([message.subarray(0, at), bytes, message.subarray(at + taken)]);
      return answered(refusedBy(aim, "mutated", method, changed));
    });
}

function legal(aim: Aim): Arbitrary<HostileCall> {
  const { tongue } = aim;
  return anyOf(
    fc.tuple(tongue.valid, oddText, oddJson, fc.uint8Array({ maxLength: 20 })).map(([request, text, value, bytes]) =>
      sent(aim, "legal but odd", tongue.withParts(request, tongue.parts(text, value))).map((call) => ({
        ...answered(call),
        // Fields that nobody knows are for others.
        body: framed(Buffer.concat([call.body.subarray(5), field(2_000, bytes)])),
      })),
    ),
  );
}

/** One whole message, and besides something that the library may overlook. */
function almostFramed(aim: Aim): Arbitrary<HostileCall> {
  return anyOf(
    fc.tuple(aim.tongue.valid, fc.uint8Array({ minLength: 1, maxLength: 20 })).map(([request, noise]) =>
      sent(aim, "almost a message", request).flatMap((call) => {
        const message = call.body.subarray(5);
        const carried = { ...answered(call), by: "carrier", broken: true } as const;
        return [
          { ...carried, label: "compressed by nothing", body: framed(message, message.length, 1) },
          { ...carried, label: "something after the message", body: Buffer.concat([call.body, noise]) },
        ];
      }),
    ),
  );
}

const METADATA = [
  ...["a2a-extensions", "x-a2a-extensions", "idempotency-key", "last-event-id", "authorization", "x-agent", "cookie"],
  ...["x-bin", "grpc-accept-encoding", "grpc-tags-bin", "user-agent", "grpc-timeout", "a2a-version"],
];

function oddMetadata(aim: Aim): Arbitrary<HostileCall> {
  const value = fc.oneof(headerValue, fc.constantFrom("*", ",,,,", "x".repeat(4_000), "0", "1S", "!!!"));
  return anyOf(
    fc.tuple(aim.tongue.valid, fc.constantFrom(...METADATA), value).map(([request, name, said]) =>
      sent(aim, "odd metadata", request).map((call) => ({
        ...answered(call),
        // A name that no agent has, and a time that is none, are for the carrier or the server to refuse.
        by: "carrier" as const,
        broken: name === "grpc-timeout",
        headers: { ...call.headers, [name]: said.trim() },
      })),
    ),
  );
}

function conversation(aim: Aim): Arbitrary<HostileCall> {
  const { tongue, known } = aim;
  return anyOf(
    fc.tuple(tongue.valid, fc.integer({ min: -2, max: 40 })).map(([request, cursor]) => {
      const at = { "last-event-id": String(cursor) };
      const calls = [known().ended, known().waiting].map((id) =>
        refusedBy(aim, "subscribe", tongue.subscribe, encoded(aim, tongue.subscribe, tongue.named(id))),
      );
      const again = tongue.withParts(request, [{ text: "input again?" }]);
      return [
        ...calls.map((call) => ({ ...answered(call), headers: { ...call.headers, ...at } })),
        ...sent(aim, "talk to the waiting task", tongue.toTask(again, known().waiting)).map(answered),
      ];
    }),
  );
}

export function oddCalls(aim: Aim): Arbitrary<HostileCall> {
  return fc.oneof(
    { weight: 10, arbitrary: mutated(aim) },
    { weight: 8, arbitrary: legal(aim) },
    { weight: 6, arbitrary: oddMetadata(aim) },
    { weight: 1, arbitrary: almostFramed(aim) },
    { weight: 2, arbitrary: conversation(aim) },
  );
}
