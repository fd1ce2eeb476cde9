/** Certificates for tests, written in DER by hand (RFC 5280), so that no program has to be there to make them. */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";

export interface Made {
  /** Certificate and private key in PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface Authority extends Made {
  issue(subject: Subject): Made;
}

interface Subject {
  readonly commonName: string;
  readonly dns?: readonly string[];
  readonly uris?: readonly string[];
  readonly addresses?: readonly string[];
  readonly days?: number;
}

export function createAuthority(commonName = "Test authority"): Authority {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const cert = certificateOf({ commonName }, commonName, privateKey, privateKey, true);
  return {
    cert,
    key: pem(privateKey),
    issue(subject) {
      const { privateKey: own } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      return { cert: certificateOf(subject, commonName, own, privateKey, false), key: pem(own) };
    },
  };
}

const pem = (key: KeyObject) => key.export({ type: "pkcs8", format: "pem" }).toString();

const ECDSA_WITH_SHA256 = sequence(oid("1.2.840.10045.4.3.2"));
const DAY_MS = 86_400_000;

function certificateOf(subject: Subject, issuer: string, own: KeyObject, by: KeyObject, isAuthority: boolean): string {
  const { days = 1 } = subject;
  const ends = Date.now() + days * DAY_MS;
  const begins = Math.min(Date.now(), ends) - DAY_MS;
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([0x01]), randomBytes(15)])),
    ECDSA_WITH_SHA256,
    nameOf(issuer),
    sequence(time(begins), time(ends)),
    nameOf(subject.commonName),
    createPublicKey(own).export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensionsOf(subject, isAuthority))),
  );
  const signature = sign("sha256", body, by);
  const all = sequence(body, ECDSA_WITH_SHA256, tagged(0x03, Buffer.from([0]), signature));
  const lines = all.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function extensionsOf({ dns = [], uris = [], addresses = [] }: Subject, isAuthority: boolean): readonly Buffer[] {
  const names = [
    ...dns.map((name) => tagged(0x82, Buffer.from(name))),
    ...uris.map((uri) => tagged(0x86, Buffer.from(uri))),
    ...addresses.map((address) => tagged(0x87, Buffer.from(address.split(".").map(Number)))),
  ];
  const constraints = extension("2.5.29.19", sequence(...(isAuthority ? [tagged(0x01, Buffer.from([0xff]))] : [])));
  return names.length === 0 ? [constraints] : [constraints, extension("2.5.29.17", sequence(...names))];
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), tagged(0x04, value));
}

function nameOf(commonName: string): Buffer {
  return sequence(tagged(0x31, sequence(oid("2.5.4.3"), tagged(0x0c, Buffer.from(commonName)))));
}

function time(milliseconds: number): Buffer {
  const text = new Date(milliseconds).toISOString().replace(/[-:T]|\.\d+/g, "");
  return tagged(0x18, Buffer.from(text));
}

function integer(value: Buffer): Buffer {
  return tagged(0x02, value);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, ...parts);
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const bytes = rest.flatMap((number) => {
    const groups = [number & 0x7f];
    for (let left = number >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return tagged(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
