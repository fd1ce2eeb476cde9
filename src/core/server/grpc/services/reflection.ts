/** Server reflection: lists the services and returns the files that describe them. */

import type { RpcServing } from "../../../dialects/contract.ts";
import { compileProtobuf } from "../../../dialects/shared/proto/binary-codec.ts";
import type { ProtoTables } from "../../../dialects/shared/proto/json-codec.ts";
import { RPC_CODES, RpcStatusError } from "../../../wire/rpc.ts";
import { DESCRIPTORS } from "./descriptors.generated.ts";
import { type ReflectedFile, ReflectionFiles } from "./reflection-files.ts";

/** The messages of `grpc.reflection.v1` and of `v1alpha`, which are identical. */
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

/** Answers the requests of one call, one after the other. Throws an RpcStatusError for an invalid request. */
export type ReflectionSession = (message: Uint8Array) => Uint8Array;

export class Reflection {
  readonly #names: readonly string[];
  readonly #files: ReflectionFiles;

  private constructor(files: ReflectionFiles, names: readonly string[]) {
    this.#names = [...names].sort();
    this.#files = files;
  }

  /** `names` are those of all services, including the endpoint's own. */
  static async of(services: readonly RpcServing[], names: readonly string[]): Promise<Reflection> {
    const descriptors = await Promise.all(services.map((serving) => serving.descriptors()));
    return new Reflection(new ReflectionFiles([...DESCRIPTORS, ...descriptors.flat()]), names);
  }

  openSession(): ReflectionSession {
    const sent = new Set<string>();
    return (message) => {
      const request = decodeRequest(message);
      const answer = this.#answer(request, sent);
      const response = { validHost: request.host ?? "", originalRequest: request, ...answer };
      return codec.encode("ServerReflectionResponse", response);
    };
  }

  #answer(request: ReflectionRequest, sent: Set<string>): ReflectionAnswer {
    const { fileByFilename, fileContainingSymbol, fileContainingExtension, allExtensionNumbersOfType } = request;
    if (request.listServices !== undefined) {
      return { listServicesResponse: { service: this.#names.map((name) => ({ name })) } };
    }
    if (fileByFilename !== undefined) {
      return this.#show(this.#files.byName(fileByFilename), sent, `There is no file "${fileByFilename}".`);
    }
    if (fileContainingSymbol !== undefined) {
      const file = this.#files.bySymbol(fileContainingSymbol.replace(/^\./, ""));
      return this.#show(file, sent, `Nothing here is called "${fileContainingSymbol}".`);
    }
    if (allExtensionNumbersOfType !== undefined) {
      const name = allExtensionNumbersOfType.replace(/^\./, "");
      if (this.#files.hasMessage(name)) return { allExtensionNumbersResponse: { baseTypeName: name } };
      return notFound(`There is no message "${name}".`);
    }
    if (fileContainingExtension !== undefined) return notFound("There are no extensions here.");
    throw new RpcStatusError({ code: RPC_CODES.INVALID_ARGUMENT, message: "The request asks for nothing." });
  }

  /** Includes all direct and indirect imports that were not sent on this call before. */
  #show(file: ReflectedFile | undefined, sent: Set<string>, message: string): ReflectionAnswer {
    if (file === undefined) return notFound(message);
    const shown = new Map([[file.name, file]]);
    for (const { dependencies } of shown.values()) {
      for (const name of dependencies) {
        const dependency = sent.has(name) ? undefined : this.#files.byName(name);
        if (dependency !== undefined) shown.set(name, dependency);
      }
    }
    for (const name of shown.keys()) sent.add(name);
    return { fileDescriptorResponse: { fileDescriptorProto: [...shown.values()].map(({ bytes }) => base64(bytes)) } };
  }
}

function decodeRequest(message: Uint8Array): ReflectionRequest {
  try {
    return codec.decode("ServerReflectionRequest", message);
  } catch {
    throw new RpcStatusError({ code: RPC_CODES.INVALID_ARGUMENT, message: "The bytes are not a reflection request." });
  }
}

function notFound(errorMessage: string): ReflectionAnswer {
  return { errorResponse: { errorCode: RPC_CODES.NOT_FOUND, errorMessage } };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
