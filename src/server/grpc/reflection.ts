/** Server reflection: callers ask for the services here and for the files that describe them. */
import type { RpcServing } from "../../dialects/contract.ts";
import { RPC_CODES, RpcStatusError } from "../../wire/rpc.ts";
import { ownDescriptors } from "./own-descriptors.ts";
import { type ReflectedFile, ReflectionFiles, readDescriptor } from "./reflection-files.ts";
import {
  decodeReflection,
  encodeReflection,
  type ReflectionAnswer,
  type ReflectionRequest,
} from "./reflection-messages.ts";

/** The questions and answers of one call. */
export interface ReflectionTalk {
  /** Throws an RpcStatusError for what is no question. */
  answer(message: Uint8Array): Uint8Array;
}

export class Reflection {
  readonly #names: readonly string[];
  readonly #files: ReflectionFiles;

  private constructor(files: ReflectionFiles, names: readonly string[]) {
    this.#names = [...names].sort();
    this.#files = files;
  }

  /** `names` are those of all services here, the endpoint's own included. */
  static async of(services: readonly RpcServing[], names: readonly string[]): Promise<Reflection> {
    const descriptors = await Promise.all(services.map((serving) => serving.descriptor()));
    return new Reflection(new ReflectionFiles([...descriptors.map(readDescriptor), ...ownDescriptors()]), names);
  }

  talk(): ReflectionTalk {
    const told = new Set<string>();
    return {
      answer: (message) => {
        const request = read(message);
        return encodeReflection(request, this.#answer(request, told));
      },
    };
  }

  #answer(request: ReflectionRequest, told: Set<string>): ReflectionAnswer {
    const { fileByFilename, fileContainingSymbol, fileContainingExtension, allExtensionNumbersOfType } = request;
    if (request.listServices !== undefined) {
      return { listServicesResponse: { service: this.#names.map((name) => ({ name })) } };
    }
    if (fileByFilename !== undefined) {
      return this.#show(this.#files.named(fileByFilename), told, `There is no file "${fileByFilename}".`);
    }
    if (fileContainingSymbol !== undefined) {
      const file = this.#files.declaring(fileContainingSymbol.replace(/^\./, ""));
      return this.#show(file, told, `Nothing here is called "${fileContainingSymbol}".`);
    }
    if (allExtensionNumbersOfType !== undefined) {
      const name = allExtensionNumbersOfType.replace(/^\./, "");
      if (this.#files.hasMessage(name)) return { allExtensionNumbersResponse: { baseTypeName: name } };
      return notFound(`There is no message "${name}".`);
    }
    if (fileContainingExtension !== undefined) return notFound("There are no extensions here.");
    throw new RpcStatusError({ code: RPC_CODES.INVALID_ARGUMENT, message: "The request asks for nothing." });
  }

  /** With everything it imports, directly or not, that this caller has not been shown. */
  #show(file: ReflectedFile | undefined, told: Set<string>, complaint: string): ReflectionAnswer {
    if (file === undefined) return notFound(complaint);
    const shown = new Map([[file.name, file]]);
    for (const { dependencies } of shown.values()) {
      for (const name of dependencies) {
        const dependency = told.has(name) ? undefined : this.#files.named(name);
        if (dependency !== undefined) shown.set(name, dependency);
      }
    }
    for (const name of shown.keys()) told.add(name);
    return { fileDescriptorResponse: { fileDescriptorProto: [...shown.values()].map(({ bytes }) => base64(bytes)) } };
  }
}

function read(message: Uint8Array): ReflectionRequest {
  try {
    return decodeReflection(message);
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
