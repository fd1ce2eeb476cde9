/** Frames of Feishu's long connection: protobuf, as its libraries define it. */

export interface FeishuFrame {
  readonly service: number;
  /** 0: control, 1: data. */
  readonly method: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: Buffer;
}

export function encodeFrame({ headers, method, payload, service }: FeishuFrame): Buffer {
  return Buffer.concat([
    varintField(1, 0),
    varintField(2, 0),
    varintField(3, service),
    varintField(4, method),
    ...Object.entries(headers).map(([key, value]) =>
      bytesField(5, Buffer.concat([bytesField(1, Buffer.from(key)), bytesField(2, Buffer.from(value))])),
    ),
    bytesField(8, payload),
  ]);
}

export function decodeFrame(bytes: Buffer): FeishuFrame {
  const headers: Record<string, string> = {};
  const numbers = new Map<number, number>();
  let payload = Buffer.alloc(0);
  for (const { field, value } of readFields(bytes)) {
    if (typeof value === "number") numbers.set(field, value);
    else if (field === 8) payload = Buffer.from(value);
    else if (field === 5) {
      const [key = "", text = ""] = readFields(value).map((one) => one.value.toString());
      headers[key] = text;
    }
  }
  return { service: numbers.get(3) ?? 0, method: numbers.get(4) ?? 0, headers, payload };
}

function readFields(bytes: Buffer): { readonly field: number; readonly value: number | Buffer }[] {
  const fields = [];
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    if ((tag & 7) === 0) fields.push({ field: tag >> 3, value: varint() });
    else {
      const length = varint();
      fields.push({ field: tag >> 3, value: bytes.subarray(at, at + length) });
      at += length;
    }
  }
  return fields;
}

function varintField(field: number, value: number): Buffer {
  return Buffer.concat([toVarint(field << 3), toVarint(value)]);
}

function bytesField(field: number, value: Buffer): Buffer {
  return Buffer.concat([toVarint((field << 3) | 2), toVarint(value.length), value]);
}

function toVarint(value: number): Buffer {
  const bytes = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}
