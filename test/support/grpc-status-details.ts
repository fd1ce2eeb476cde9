/** The details of an error over gRPC: `google.rpc.Status` and what stands in it, written down from its definition. */
import { fromJSON, type MessageTypeDefinition } from "@grpc/proto-loader";
import type { WireDetail } from "./wire-types.ts";

type Plain = Readonly<Record<string, unknown>>;

const strings = (...names: string[]) =>
  Object.fromEntries(names.map((name, at) => [name, { type: "string", id: at + 1 }]));

/** The declaration of the library has no place for the type of the keys. */
const MAP_OF_TEXT = { keyType: "string", type: "string", id: 3 };

const TYPES = fromJSON(
  {
    nested: {
      Any: { fields: { typeUrl: { type: "string", id: 1 }, value: { type: "bytes", id: 2 } } },
      Status: {
        fields: {
          code: { type: "int32", id: 1 },
          message: { type: "string", id: 2 },
          details: { rule: "repeated", type: "Any", id: 3 },
        },
      },
      ErrorInfo: {
        fields: { ...strings("reason", "domain"), metadata: MAP_OF_TEXT },
      },
      FieldViolation: { fields: strings("field", "description") },
      BadRequest: { fields: { fieldViolations: { rule: "repeated", type: "FieldViolation", id: 1 } } },
      Duration: { fields: { seconds: { type: "int64", id: 1 }, nanos: { type: "int32", id: 2 } } },
      RetryInfo: { fields: { retryDelay: { type: "Duration", id: 1 } } },
    },
  },
  { longs: Number, bytes: Buffer, defaults: false },
);

function decoded(name: string, bytes: Buffer): Plain {
  return (TYPES[name] as MessageTypeDefinition<Plain, Plain>).deserialize(bytes);
}

/** Code and details, in the form they have in JSON. */
export function readStatusDetails(bytes: Buffer): { readonly code: unknown; readonly details: readonly WireDetail[] } {
  const { code, details = [] } = decoded("Status", bytes);
  return { code, details: (details as readonly { typeUrl: string; value: Buffer }[]).map(toDetail) };
}

function toDetail({ typeUrl, value }: { readonly typeUrl: string; readonly value: Buffer }): WireDetail {
  const detail = decoded(typeUrl.slice(typeUrl.lastIndexOf(".") + 1), value);
  if (detail.retryDelay === undefined) return { "@type": typeUrl, ...detail };
  const { seconds = 0, nanos = 0 } = detail.retryDelay as { readonly seconds?: number; readonly nanos?: number };
  return { "@type": typeUrl, retryDelay: `${seconds + nanos / 1e9}s` } as WireDetail;
}
