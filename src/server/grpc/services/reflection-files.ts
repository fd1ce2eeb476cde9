/** Every `.proto` file available through reflection, by name or by declared symbol. */

import { compileProtobuf } from "../../../dialects/shared/proto/binary-codec.ts";
import { WireReader } from "../../../dialects/shared/proto/binary-wire.ts";
import type { ProtoTables } from "../../../dialects/shared/proto/json-codec.ts";

/** The named parts of `google/protobuf/descriptor.proto`. */
const TABLES = {
  messages: {
    FileDescriptorProto: [
      ["name", "string", "implicit", 1],
      ["package", "string", "implicit", 2],
      ["dependency", "string[]", "implicit", 3],
      ["messageType", "DescriptorProto[]", "implicit", 4],
      ["enumType", "NamedGroup[]", "implicit", 5],
      ["service", "NamedGroup[]", "implicit", 6],
      ["extension", "Named[]", "implicit", 7],
    ],
    DescriptorProto: [
      ["name", "string", "implicit", 1],
      ["field", "Named[]", "implicit", 2],
      ["nestedType", "DescriptorProto[]", "implicit", 3],
      ["enumType", "NamedGroup[]", "implicit", 4],
      ["extension", "Named[]", "implicit", 6],
      ["oneofDecl", "Named[]", "implicit", 8],
    ],
    NamedGroup: [
      ["name", "string", "implicit", 1],
      ["members", "Named[]", "implicit", 2],
    ],
    Named: [["name", "string", "implicit", 1]],
  },
  enums: {},
} as const satisfies ProtoTables;

interface Named {
  readonly name?: string;
}

/** An enum with its values, or a service with its methods. */
interface NamedGroup extends Named {
  readonly members?: readonly Named[];
}

interface MessageDescriptor extends Named {
  readonly field?: readonly Named[];
  readonly nestedType?: readonly MessageDescriptor[];
  readonly enumType?: readonly NamedGroup[];
  readonly extension?: readonly Named[];
  readonly oneofDecl?: readonly Named[];
}

interface FileDescriptor extends Named {
  readonly package?: string;
  readonly dependency?: readonly string[];
  readonly messageType?: readonly MessageDescriptor[];
  readonly enumType?: readonly NamedGroup[];
  readonly service?: readonly NamedGroup[];
  readonly extension?: readonly Named[];
}

const codec = compileProtobuf<"FileDescriptorProto">(TABLES);

export interface ReflectedFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly dependencies: readonly string[];
}

interface KnownFile {
  readonly bytes: Buffer;
  readonly imports: readonly string[];
  reflected: ReflectedFile | undefined;
}

const NONE: readonly never[] = [];

export class ReflectionFiles {
  readonly #files = new Map<string, KnownFile>();
  readonly #symbols = new Map<string, string>();
  readonly #messages = new Set<string>();

  /** Serialised descriptors in base64. */
  constructor(descriptors: readonly string[]) {
    for (const encoded of descriptors) {
      const bytes = Buffer.from(encoded, "base64");
      const file: FileDescriptor = codec.decode("FileDescriptorProto", bytes);
      const { dependency = NONE, name = "" } = file;
      if (this.#files.has(name)) throw new TypeError(`Two files are called "${name}".`);
      this.#files.set(name, { bytes, imports: dependency, reflected: undefined });
      this.#declare(file, name);
    }
  }

  byName(name: string): ReflectedFile | undefined {
    const known = this.#files.get(name);
    if (known === undefined) return undefined;
    known.reflected ??= this.#reflect(name, known);
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

  /** A file with missing imports is useless to a caller; the omitted ones are options of other tools. */
  #reflect(name: string, { bytes, imports }: KnownFile): ReflectedFile {
    const dependencies = imports.filter((one) => this.#files.has(one));
    const isComplete = dependencies.length === imports.length;
    return { name, bytes: isComplete ? bytes : withoutImports(bytes, new Set(dependencies)), dependencies };
  }

  #declare(file: FileDescriptor, name: string): void {
    const scope = file.package === undefined ? "" : `${file.package}.`;
    for (const message of file.messageType ?? NONE) this.#declareMessage(message, scope, name);
    for (const one of file.enumType ?? NONE) this.#declareEnum(one, scope, name);
    for (const extension of file.extension ?? NONE) this.#symbols.set(scope + extension.name, name);
    for (const service of file.service ?? NONE) {
      this.#symbols.set(scope + service.name, name);
      for (const method of service.members ?? NONE) this.#symbols.set(`${scope}${service.name}.${method.name}`, name);
    }
  }

  #declareMessage(message: MessageDescriptor, scope: string, file: string): void {
    const { enumType = NONE, extension = NONE, field = NONE, nestedType = NONE, oneofDecl = NONE } = message;
    const name = scope + message.name;
    this.#messages.add(name);
    this.#symbols.set(name, file);
    for (const part of [...field, ...oneofDecl, ...extension]) this.#symbols.set(`${name}.${part.name}`, file);
    for (const nested of nestedType) this.#declareMessage(nested, `${name}.`, file);
    for (const nested of enumType) this.#declareEnum(nested, `${name}.`, file);
  }

  /** Enum values are siblings of their enum, not children. */
  #declareEnum(declared: NamedGroup, scope: string, file: string): void {
    this.#symbols.set(scope + declared.name, file);
    for (const { name } of declared.members ?? NONE) this.#symbols.set(scope + name, file);
  }
}

const DEPENDENCY = 3;
/** Fields that refer to dependencies by index, or list more of them. */
const ABOUT_DEPENDENCIES: ReadonlySet<number> = new Set([10, 11, 15]);

/** The same file with only these imports; all other bytes are unchanged. */
function withoutImports(bytes: Buffer, known: ReadonlySet<string>): Buffer {
  const kept: Buffer[] = [];
  const reader = new WireReader(bytes);
  while (reader.at < reader.end) {
    const start = reader.at;
    const tag = reader.tag();
    const field = tag >>> 3;
    const isLeftOut = field === DEPENDENCY ? !known.has(reader.string()) : ABOUT_DEPENDENCIES.has(field);
    if (field !== DEPENDENCY) reader.skip(tag);
    if (!isLeftOut) kept.push(bytes.subarray(start, reader.at));
  }
  return Buffer.concat(kept);
}
