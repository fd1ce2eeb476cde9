/** Reads `grpc-status-details-bin`: just enough of protobuf for a `google.rpc.Status` and the details in it. */
import type { Fields } from "../json.ts";
import { ERROR_INFO } from "./error-details.ts";

interface Field {
  readonly number: number;
  readonly value: Uint8Array | bigint;
}

const decoder = new TextDecoder();

/** The details as their JSON form would be; undefined where the bytes are no status. */
export function readStatusDetails(bytes: Uint8Array): readonly Fields[] | undefined {
  try {
    return fields(bytes)
      .filter(({ number }) => number === 3)
      .map(({ value }) => readAny(value as Uint8Array));
  } catch {
    return undefined;
  }
}

function readAny(bytes: Uint8Array): Fields {
  const members = fields(bytes);
  const type = text(members, 1);
  const inner = members.find(({ number }) => number === 2)?.value;
  if (type !== ERROR_INFO || !(inner instanceof Uint8Array)) return { "@type": type };
  const info = fields(inner);
  const metadata = info
    .filter(({ number }) => number === 3)
    .map(({ value }) => fields(value as Uint8Array))
    .map((entry) => [text(entry, 1), text(entry, 2)] as const);
  return {
    "@type": type,
    reason: text(info, 1),
    domain: text(info, 2),
    metadata: Object.fromEntries(metadata),
  };
}

function text(members: readonly Field[], number: number): string {
  const value = members.findLast((field) => field.number === number)?.value;
  return value instanceof Uint8Array ? decoder.decode(value) : "";
}

const VARINT = 0;
const FIXED_64 = 1;
const LENGTH = 2;
const FIXED_32 = 5;

function fields(bytes: Uint8Array): Field[] {
  const found: Field[] = [];
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError("The bytes end within a number.");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError("A number is too long.");
  };
  const take = (length: number): Uint8Array => {
    if (at + length > bytes.length) throw new RangeError("The bytes end within a field.");
    const part = bytes.subarray(at, at + length);
    at += length;
    return part;
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >>> 3;
    switch (tag & 7) {
      case VARINT:
        found.push({ number, value: varint() });
        break;
      case FIXED_64:
        found.push({ number, value: take(8) });
        break;
      case LENGTH:
        found.push({ number, value: take(Number(varint())) });
        break;
      case FIXED_32:
        found.push({ number, value: take(4) });
        break;
      default:
        throw new RangeError("There is no such wire type.");
    }
  }
  return found;
}
