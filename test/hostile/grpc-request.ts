/** A call of somebody who means no good, byte by byte, and what may be expected of the answer. */
export interface HostileCall {
  /** What is wrong with it. */
  readonly label: string;
  readonly path: string;
  /** What goes over the stream: messages with their lengths before them, or what is to pass for that. */
  readonly body: Buffer;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /**
   * Who answers: the dialect, in its own words and with details; the carrier, which has only statuses; or nobody, since
   * the caller goes away before its message is there.
   */
  readonly by: "dialect" | "carrier" | "nobody";
  readonly must: "be refused" | "be answered";
  /** The status gRPC itself prescribes for what did not even arrive as a message, where that is INTERNAL. */
  readonly broken?: boolean;
}

export function framed(message: Uint8Array, announced = message.length, compressed = 0): Buffer {
  const head = Buffer.alloc(5);
  head[0] = compressed;
  head.writeUInt32BE(announced >>> 0, 1);
  return Buffer.concat([head, message]);
}

/** Unsigned, of any size that fits a number. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  return Buffer.from([...bytes, rest]);
}

/** A field that has its length before it: text, bytes, a message. */
export function field(number: number, content: Uint8Array | string): Buffer {
  const bytes = Buffer.from(content);
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

export function numberField(number: number, value: number): Buffer {
  return Buffer.concat([varint(number * 8), varint(value)]);
}
