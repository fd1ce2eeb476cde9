/** The messages of `grpc.reflection.v1` and of `v1alpha`, which are the same. */

import { compileProtobuf } from "../../dialects/shared/proto/binary-codec.ts";
import type { ProtoTables } from "../../dialects/shared/proto/json-codec.ts";

export const REFLECTION_TABLES = {
  messages: {
    ServerReflectionRequest: [
      ["host", "string", "implicit", 1],
      ["fileByFilename", "string", "oneof", 3],
      ["fileContainingSymbol", "string", "oneof", 4],
      ["fileContainingExtension", "ExtensionRequest", "oneof", 5],
      ["allExtensionNumbersOfType", "string", "oneof", 6],
      ["listServices", "string", "oneof", 7],
    ],
    ExtensionRequest: [
      ["containingType", "string", "implicit", 1],
      ["extensionNumber", "int32", "implicit", 2],
    ],
    ServerReflectionResponse: [
      ["validHost", "string", "implicit", 1],
      ["originalRequest", "ServerReflectionRequest", "optional", 2],
      ["fileDescriptorResponse", "FileDescriptorResponse", "oneof", 4],
      ["allExtensionNumbersResponse", "ExtensionNumberResponse", "oneof", 5],
      ["listServicesResponse", "ListServiceResponse", "oneof", 6],
      ["errorResponse", "ErrorResponse", "oneof", 7],
    ],
    FileDescriptorResponse: [["fileDescriptorProto", "bytes[]", "implicit", 1]],
    ExtensionNumberResponse: [
      ["baseTypeName", "string", "implicit", 1],
      ["extensionNumber", "int32[]", "implicit", 2],
    ],
    ListServiceResponse: [["service", "ServiceResponse[]", "implicit", 1]],
    ServiceResponse: [["name", "string", "implicit", 1]],
    ErrorResponse: [
      ["errorCode", "int32", "implicit", 1],
      ["errorMessage", "string", "implicit", 2],
    ],
  },
  enums: {},
} as const satisfies ProtoTables;

export interface ReflectionRequest {
  readonly host?: string;
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
  readonly fileContainingExtension?: { readonly containingType?: string; readonly extensionNumber?: number };
  readonly allExtensionNumbersOfType?: string;
  readonly listServices?: string;
}

export type ReflectionAnswer =
  | { readonly fileDescriptorResponse: { readonly fileDescriptorProto: readonly string[] } }
  | { readonly allExtensionNumbersResponse: { readonly baseTypeName: string } }
  | { readonly listServicesResponse: { readonly service: readonly { readonly name: string }[] } }
  | { readonly errorResponse: { readonly errorCode: number; readonly errorMessage: string } };

const codec = compileProtobuf<"ServerReflectionRequest" | "ServerReflectionResponse">(REFLECTION_TABLES);

/** Throws a ProtocolError for what is no request. */
export function decodeReflection(bytes: Uint8Array): ReflectionRequest {
  return codec.decode("ServerReflectionRequest", bytes);
}

export function encodeReflection(request: ReflectionRequest, answer: ReflectionAnswer): Uint8Array {
  const response = { validHost: request.host ?? "", originalRequest: request, ...answer };
  return codec.encode("ServerReflectionResponse", response);
}
