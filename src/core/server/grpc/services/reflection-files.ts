/** Every `.proto` file available through reflection, by name or by declared symbol. */

import { compileProtobuf } from "../../../dialects/shared/proto/binary-codec.ts";
import { WireReader } from "../../../dialects/shared/proto/binary-wire.ts";
import type { ProtoTables } from "../../../dialects/shared/proto/json-codec.ts";

const NAME = ["name", "string", "implicit", 1] as const;

/** The named parts of `google/protobuf/descriptor.proto`. */
const TABLES = {
  messages: {
    FileDescriptorProto: [
      NAME,
      ["package", "string", "implicit", 2],
      ["dependency", "string[]", "implicit", 3],
      ["messages", "DescriptorProto[]", "implicit", 4],
      ["enums", "NamedGroup[]", "implicit", 5],
      ["services", "NamedGroup[]", "implicit", 6],
      ["extensions", "Named[]", "implicit", 7],
    ],
    DescriptorProto: [
      NAME,
      ["members", "Named[]", "implicit", 2],
      ["messages", "DescriptorProto[]", "implicit", 3],
      ["enums", "NamedGroup[]", "implicit", 4],
      ["extensions", "Named[]", "implicit", 6],
      ["oneofs", "Named[]", "implicit", 8],
    ],
    NamedGroup: [NAME, ["members", "Named[]", "implicit", 2]],
    Named: [NAME],
  },
  enums: {},
} as const satisfies ProtoTables;

type Declarations = readonly Declaration[];

/** A file, or something that it declares. */
interface Declaration {
  readonly name?: string;
  readonly package?: string;
  readonly dependency?: readonly string[];
  readonly messages?: Declarations;
  readonly enums?: Declarations;
  readonly services?: Declarations;
  readonly extensions?: Declarations;
  readonly oneofs?: Declarations;
  /** Fields of a message, values of an enum, methods of a service. */
  readonly members?: Declarations;
}

const codec = compileProtobuf<"FileDescriptorProto">(TABLES);

export interface ReflectedFile {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly dependencies: readonly string[];
}

const NONE: Declarations = [];

export class ReflectionFiles {
  readonly #files = new Map<string, ReflectedFile>();
  readonly #symbols = new Map<string, string>();
  readonly #messages = new Set<string>();

  /** Serialised descriptors in base64. */
  constructor(descriptors: readonly string[]) {
    for (const encoded of descriptors) {
      const bytes = Buffer.from(encoded, "base64");
      const file: Declaration = codec.decode("FileDescriptorProto", bytes);
      const { dependency: dependencies = [], name = "" } = file;
      if (this.#files.has(name)) throw new TypeError(`Two files are called "${name}".`);
      this.#files.set(name, { name, bytes, dependencies });
      this.#declare(file, file.package === undefined ? "" : `${file.package}.`, name);
    }
  }

  /** A file with missing imports is useless to a caller; the omitted ones are options of other tools. */
  byName(name: string): ReflectedFile | undefined {
    const file = this.#files.get(name);
    const dependencies = file?.dependencies.filter((one) => this.#files.has(one)) ?? [];
    if (file === undefined || dependencies.length === file.dependencies.length) return file;
    const complete = { name, bytes: withoutImports(file.bytes, new Set(dependencies)), dependencies };
    this.#files.set(name, complete);
    return complete;
  }

  /** The file that declares a service, method, message, field, enum or enum value. */
  bySymbol(symbol: string): ReflectedFile | undefined {
    const name = this.#symbols.get(symbol);
    return name === undefined ? undefined : this.byName(name);
  }

  hasMessage(name: string): boolean {
    return this.#messages.has(name);
  }

  #declare(within: Declaration, scope: string, file: string): void {
    const { messages = NONE, enums = NONE, services = NONE } = within;
    const { members = NONE, extensions = NONE, oneofs = NONE } = within;
    const named = [...messages, ...enums, ...services, ...members, ...extensions, ...oneofs];
    for (const { name } of named) this.#symbols.set(scope + name, file);
    for (const { name } of messages) this.#messages.add(scope + name);
    for (const one of [...messages, ...services]) this.#declare(one, `${scope}${one.name}.`, file);
    // Enum values are siblings of their enum, not children.
    for (const one of enums) this.#declare(one, scope, file);
  }
}

const DEPENDENCY = 3;
/** Fields that refer to dependencies by index, or list more of them. */
const ABOUT_DEPENDENCIES: ReadonlySet<number> = new Set([10, 11, 15]);

/** The same file with only these imports; all other bytes are unchanged. */
function withoutImports(bytes: Uint8Array, known: ReadonlySet<string>): Buffer {
  const kept: Uint8Array[] = [];
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
