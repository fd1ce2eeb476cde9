/** Both gRPC services as one speaks them. */
import fc, { type Arbitrary } from "fast-check";
import {
  A2A_V1_SERVICE,
  A2A_V03_SERVICE,
  type Plain,
  type PublishedMethod,
  type PublishedService,
  toStruct,
  toValue,
} from "../support/published-protos.ts";
import { field, numberField } from "./grpc-request.ts";

export interface GrpcDialect {
  readonly name: string;
  readonly service: PublishedService;
  readonly sends: readonly PublishedMethod[];
  /** Reading, cancelling and following a task. */
  readonly aboutTasks: readonly PublishedMethod[];
  readonly subscribe: PublishedMethod;
  /** What says which agent is meant: in the message, or beside it. */
  addressed(agent: string, request: Plain): Plain;
  headers(agent: string): Readonly<Record<string, string>>;
  readonly valid: Arbitrary<Plain>;
  /** The number of `metadata` in a send. */
  readonly metadataField: number;
  /** Fields that make a valid send invalid, to be put behind it: what comes last counts, and lists grow. */
  readonly wrong: readonly (readonly [what: string, fields: Buffer])[];
  /** A part that holds the value. */
  parts(text: string, value: unknown): Plain[];
  withParts(request: Plain, parts: readonly Plain[]): Plain;
  toTask(request: Plain, taskId: string, contextId?: string): Plain;
  named(taskId: string): Plain;
  push(taskId: string, url: string): Plain;
}

const shortText = fc.string({ minLength: 1, maxLength: 20 });
const textParts = fc.array(fc.record({ text: shortText }), { minLength: 1, maxLength: 3 });
const metadata = fc.record({ key: fc.string() }).map(toStruct);

function method(service: PublishedService, name: string): PublishedMethod {
  return service[name] as PublishedMethod;
}

const NOT_UTF8 = Buffer.from([0x61, 0xff, 0xfe, 0x62]);

const v1Message = (...fields: Buffer[]) => field(2, Buffer.concat(fields));

const v1: GrpcDialect = {
  name: "lf.a2a.v1",
  service: A2A_V1_SERVICE,
  sends: [method(A2A_V1_SERVICE, "SendMessage"), method(A2A_V1_SERVICE, "SendStreamingMessage")],
  aboutTasks: ["GetTask", "CancelTask", "SubscribeToTask"].map((name) => method(A2A_V1_SERVICE, name)),
  subscribe: method(A2A_V1_SERVICE, "SubscribeToTask"),
  addressed: (tenant, request) => ({ ...request, tenant }),
  headers: () => ({ "a2a-version": "1.0" }),
  valid: fc.record({
    message: fc.record({ messageId: shortText, role: fc.constant(1), parts: textParts, contextId: shortText }),
    configuration: fc.record({ historyLength: fc.nat(10), returnImmediately: fc.boolean() }),
    metadata,
  }),
  metadataField: 4,
  wrong: [
    ["an empty message", v1Message()],
    ["a message of nothing but an id", v1Message(field(1, "m"))],
    ["a message without parts", v1Message(field(1, "m"), numberField(4, 1))],
    ["a part of nothing", v1Message(field(1, "m"), numberField(4, 1), field(5, ""))],
    ["a message without an id", v1Message(numberField(4, 1), field(5, field(1, "x")))],
    ["a role that is none", v1Message(field(1, "m"), numberField(4, 77), field(5, field(1, "x")))],
    ["no role", v1Message(field(1, "m"), field(5, field(1, "x")))],
    ["a negative length of history", field(3, Buffer.from([0x18, ...Array(9).fill(0xff), 0x01]))],
    ["a webhook that is nowhere", field(3, field(2, field(4, "file:///etc/passwd")))],
    ["a webhook without an address", field(3, field(2, field(5, "token")))],
    ["text that is not UTF-8", v1Message(field(1, NOT_UTF8), numberField(4, 1), field(5, field(1, "x")))],
    ["a field longer than the message", Buffer.from([0x12, 0x7f, 0x00])],
    ["a length beyond everything", Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0x0f])],
    ["a number without end", Buffer.alloc(30, 0xff)],
    ["a group without end", Buffer.alloc(2_000, 0x7b)],
    ["a kind of field that is none", Buffer.from([0x17, 0x01])],
    ["field number zero", Buffer.from([0x02, 0x01, 0x00])],
  ],
  parts: (text, value) => [{ text }, { data: toValue(value), metadata: toStruct({ value }) }],
  withParts: ({ message, ...rest }, parts) => ({ ...rest, message: { ...(message as Plain), parts } }),
  toTask({ message, ...rest }, taskId, contextId = "") {
    return { ...rest, message: { ...(message as Plain), taskId, contextId } };
  },
  named: (id) => ({ id }),
  push: (taskId, url) => ({ taskId, url }),
};

const v03Message = (...fields: Buffer[]) => field(1, Buffer.concat(fields));

const v03: GrpcDialect = {
  name: "a2a.v1",
  service: A2A_V03_SERVICE,
  sends: [method(A2A_V03_SERVICE, "SendMessage"), method(A2A_V03_SERVICE, "SendStreamingMessage")],
  aboutTasks: ["GetTask", "CancelTask", "TaskSubscription"].map((name) => method(A2A_V03_SERVICE, name)),
  subscribe: method(A2A_V03_SERVICE, "TaskSubscription"),
  addressed: (_agent, request) => request,
  headers: (agent) => ({ "x-agent": agent }),
  valid: fc.record({
    request: fc.record({ messageId: shortText, role: fc.constant(1), content: textParts, contextId: shortText }),
    configuration: fc.record({ historyLength: fc.nat(10), blocking: fc.boolean() }),
    metadata,
  }),
  metadataField: 3,
  wrong: [
    ["an empty message", v03Message()],
    ["a message without parts", v03Message(field(1, "m"), numberField(4, 1))],
    ["a part of nothing", v03Message(field(1, "m"), numberField(4, 1), field(5, ""))],
    ["a file of nothing", v03Message(field(1, "m"), numberField(4, 1), field(5, field(2, "")))],
    ["a role that is none", v03Message(field(1, "m"), numberField(4, 77), field(5, field(1, "x")))],
    ["no role", v03Message(field(1, "m"), field(5, field(1, "x")))],
    ["a negative length of history", field(2, Buffer.from([0x18, ...Array(9).fill(0xff), 0x01]))],
    ["a webhook that is nowhere", field(2, field(2, field(2, "file:///etc/passwd")))],
    ["text that is not UTF-8", v03Message(field(1, NOT_UTF8), numberField(4, 1), field(5, field(1, "x")))],
    ["a field longer than the message", Buffer.from([0x0a, 0x7f, 0x00])],
    ["a length beyond everything", Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f])],
    ["a number without end", Buffer.alloc(30, 0xff)],
    ["a group without end", Buffer.alloc(2_000, 0x7b)],
    ["a kind of field that is none", Buffer.from([0x0f, 0x01])],
    ["field number zero", Buffer.from([0x02, 0x01, 0x00])],
  ],
  parts: (text, value) => [{ text }, { data: { data: toStruct({ value }) }, metadata: toStruct({ value }) }],
  withParts: ({ request, ...rest }, content) => ({ ...rest, request: { ...(request as Plain), content } }),
  toTask({ request, ...rest }, taskId, contextId = "") {
    return { ...rest, request: { ...(request as Plain), taskId, contextId } };
  },
  named: (id) => ({ name: `tasks/${id}` }),
  push: (taskId, url) => ({ parent: `tasks/${taskId}`, config: { pushNotificationConfig: { url } } }),
};

export const GRPC_DIALECTS: readonly GrpcDialect[] = [v1, v03];
