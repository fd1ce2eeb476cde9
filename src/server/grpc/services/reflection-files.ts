/** Every `.proto` file that reflection can show, found by its name or by what it declares. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";

const WELL_KNOWN: readonly FileDescriptorProto[] = [
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
].map(({ proto }) => proto);

export interface ReflectedFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly dependencies: readonly string[];
}

interface KnownFile {
  readonly proto: FileDescriptorProto;
  reflected: ReflectedFile | undefined;
}

export class ReflectionFiles {
  readonly #files = new Map<string, KnownFile>();
  readonly #symbols = new Map<string, string>();
  readonly #messages = new Set<string>();

  constructor(descriptors: readonly FileDescriptorProto[]) {
    for (const proto of [...WELL_KNOWN, ...descriptors]) {
      if (this.#files.has(proto.name)) throw new TypeError(`Two files are called "${proto.name}".`);
      this.#files.set(proto.name, { proto, reflected: undefined });
      this.#declare(proto);
    }
  }

  byName(name: string): ReflectedFile | undefined {
    const known = this.#files.get(name);
    if (known === undefined) return undefined;
    known.reflected ??= this.#reflect(known.proto);
    return known.reflected;
  }

  /** The file that declares a service, method, message, field, enum or enum value. */
  bySymbol(symbol: string): ReflectedFile | undefined {
    const name = this.#symbols.get(symbol);
    return name === undefined ? undefined : this.byName(name);
  }

  hasMessage(name: string): boolean {
    return this.#messages.has(name);
  }

  /** A file whose imports cannot be found is useless to a caller; those it does without are options of other tools. */
  #reflect(proto: FileDescriptorProto): ReflectedFile {
    const dependencies = proto.dependency.filter((name) => this.#files.has(name));
    const complete = dependencies.length === proto.dependency.length;
    const shown = complete
      ? proto
      : { ...proto, dependency: dependencies, publicDependency: [], weakDependency: [], optionDependency: [] };
    return { name: proto.name, bytes: toBinary(FileDescriptorProtoSchema, shown), dependencies };
  }

  #declare(file: FileDescriptorProto): void {
    const scope = file.package === "" ? "" : `${file.package}.`;
    for (const message of file.messageType) this.#declareMessage(message, scope, file.name);
    for (const one of file.enumType) this.#declareEnum(one, scope, file.name);
    for (const extension of file.extension) this.#symbols.set(scope + extension.name, file.name);
    for (const service of file.service) {
      this.#symbols.set(scope + service.name, file.name);
      for (const { name } of service.method) this.#symbols.set(`${scope}${service.name}.${name}`, file.name);
    }
  }

  #declareMessage(message: DescriptorProto, scope: string, file: string): void {
    const name = scope + message.name;
    this.#messages.add(name);
    this.#symbols.set(name, file);
    for (const part of [...message.field, ...message.oneofDecl, ...message.extension]) {
      this.#symbols.set(`${name}.${part.name}`, file);
    }
    for (const nested of message.nestedType) this.#declareMessage(nested, `${name}.`, file);
    for (const nested of message.enumType) this.#declareEnum(nested, `${name}.`, file);
  }

  /** The values of an enum are declared beside it, not within. */
  #declareEnum(declared: EnumDescriptorProto, scope: string, file: string): void {
    this.#symbols.set(scope + declared.name, file);
    for (const { name } of declared.value) this.#symbols.set(scope + name, file);
  }
}

export function readDescriptor(bytes: Uint8Array): FileDescriptorProto {
  return fromBinary(FileDescriptorProtoSchema, bytes);
}
