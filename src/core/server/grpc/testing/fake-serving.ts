import { create, toBinary } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { AgentService, RpcServing, ServeContext } from "../../../dialects/contract.ts";
import { ANONYMOUS } from "../../../model/caller.ts";
import { type Log, type Meter, NO_METER, SILENT_LOG } from "../../../model/ports.ts";
import { RPC_CODES, type RpcReply, type RpcRequest } from "../../../wire/rpc.ts";
import type { GrpcOptions } from "../node-grpc.ts";

export const SERVICE = "test.v1.Parrot";

type Handle = (request: RpcRequest, context: ServeContext) => RpcReply | Promise<RpcReply>;

/** A service whose methods `Say` and `Repeat` behave as a test specifies; by default they echo and repeat. */
export function fakeServing(handle: Handle = echo, service = SERVICE): RpcServing {
  return {
    version: "1.0",
    service,
    methods: { Say: { streams: false }, Repeat: { streams: true } },
    descriptors: async () => [Buffer.from(descriptorOf(service)).toString("base64")],
    source: () => ({ path: "parrot.proto", text: "" }),
    handle: async (request, context) => handle(request, context),
    refuse: (error) => ({
      code: error.code === "UNAUTHENTICATED" ? RPC_CODES.UNAUTHENTICATED : RPC_CODES.INTERNAL,
      message: error.message,
    }),
  };
}

const echo: Handle = ({ method, message }) =>
  method === "Say" ? { kind: "message", message } : { kind: "stream", messages: batches([[message, message]]) };

export async function* batches(all: readonly (readonly Uint8Array[])[]): AsyncGenerator<readonly Uint8Array[]> {
  yield* all;
}

/** The file of the service; it imports a well-known type without imports, and a file that does not exist. */
function descriptorOf(name: string): Uint8Array {
  const parts = name.split(".");
  const method = parts.pop() as string;
  const scope = parts.join(".");
  const type = { inputType: `.${scope}.Words`, outputType: `.${scope}.Words` };
  const file = create(FileDescriptorProtoSchema, {
    name: `${scope.replaceAll(".", "/")}/${method.toLowerCase()}.proto`,
    package: scope,
    syntax: "proto3",
    dependency: ["google/protobuf/type.proto", "google/api/annotations.proto"],
    messageType: [
      {
        name: "Words",
        field: [
          { name: "kind", number: 1, type: FieldDescriptorProto_Type.MESSAGE, typeName: ".google.protobuf.Type" },
        ],
        nestedType: [{ name: "Inner", enumType: [{ name: "Mood", value: [{ name: "MOOD_GOOD", number: 0 }] }] }],
      },
    ],
    service: [
      {
        name: method,
        method: [
          { name: "Say", ...type },
          { name: "Repeat", ...type, serverStreaming: true },
        ],
      },
    ],
  });
  return toBinary(FileDescriptorProtoSchema, file);
}

export interface FakeOptions extends Omit<Partial<GrpcOptions>, "gate" | "services"> {
  readonly handle?: Handle;
  readonly services?: readonly RpcServing[];
  readonly admit?: GrpcOptions["gate"]["admit"];
}

/** Each service is a dialect of its own, with the same name. */
export function fakeOptions({ handle, admit, services, ...rest }: FakeOptions = {}): GrpcOptions {
  return {
    services: (services ?? [fakeServing(handle)]).map((serving) => ({ dialect: serving.service, serving })),
    host: "127.0.0.1",
    port: 0,
    gate: {
      checkAddress: () => undefined,
      admit: admit ?? (() => ANONYMOUS),
      contextFor: (caller) => ({ ...fakeContext(), caller }),
    },
    stalledReaderMs: 60_000,
    log: SILENT_LOG,
    meter: NO_METER,
    ...rest,
  };
}

/** Not used by the carrier. */
function fakeContext(): ServeContext {
  return {
    service: {} as AgentService,
    caller: ANONYMOUS,
    limits: { maxDepth: 64, maxValues: 200_000, maxParts: 100, keepAliveMs: 15_000 },
    agentOfTenant: () => undefined,
    report: () => {},
    ids: { message: () => "message", context: () => "context" },
  };
}

interface Recorded {
  readonly log: Log;
  readonly meter: Meter;
  readonly lines: string[];
  readonly counted: string[];
}

export function recording(): Recorded {
  const lines: string[] = [];
  const counted: string[] = [];
  const write = (fields: object, message: string) => {
    lines.push(`${message} ${JSON.stringify(fields, (_, value) => (value instanceof Error ? value.message : value))}`);
  };
  return {
    log: { debug: write, info: write, warn: write, error: write },
    meter: { count: (name) => counted.push(name) },
    lines,
    counted,
  };
}
