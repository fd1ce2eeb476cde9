/** HTTP/2 frames written by hand: no library sends what an attacker sends. */

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
export const FRAME = { DATA: 0, HEADERS: 1, RST_STREAM: 3, SETTINGS: 4, PING: 6, WINDOW_UPDATE: 8, CONTINUATION: 9 };
export const FLAG = { END_STREAM: 1, ACK: 1, END_HEADERS: 4 };

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** What a client sends first. */
export const OPENING = Buffer.concat([PREFACE, frame(FRAME.SETTINGS, 0, 0)]);

/** HPACK integer with a prefix of `bits` (RFC 7541 §5.1). */
function integer(value: number, bits: number, first: number): Buffer {
  const max = 2 ** bits - 1;
  if (value < max) return Buffer.from([first | value]);
  const bytes = [first | max];
  let rest = value - max;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  bytes.push(rest);
  return Buffer.from(bytes);
}

function text(value: string): Buffer {
  return Buffer.concat([integer(value.length, 7, 0), Buffer.from(value)]);
}

/** A literal header field, `isIndexed`: added to the dynamic table. */
export function literal(name: string, value: string, isIndexed = false): Buffer {
  return Buffer.concat([Buffer.from([isIndexed ? 0x40 : 0]), text(name), text(value)]);
}

/** A reference to an entry; the newest of the dynamic table is 62. */
export function reference(index: number): Buffer {
  return integer(index, 7, 0x80);
}

/** The fields of a gRPC call. */
export function callFields(path: string, more: Readonly<Record<string, string>> = {}): Buffer {
  const fields = {
    ":method": "POST",
    ":scheme": "http",
    ":path": path,
    ":authority": "127.0.0.1",
    "content-type": "application/grpc",
    te: "trailers",
    ...more,
  };
  return Buffer.concat(Object.entries(fields).map(([name, value]) => literal(name, value)));
}

export const SEND_MESSAGE = "/lf.a2a.v1.A2AService/SendMessage";
