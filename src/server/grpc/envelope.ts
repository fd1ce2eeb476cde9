import type { PeerCertificate } from "../../wire/peer-certificate.ts";

/** Who is at the other end of a connection. */
export interface Sender {
  /** Without a port. */
  readonly address: string | undefined;
  readonly certificate: PeerCertificate | undefined;
}

const EMPTY = new Uint8Array();

/** A message as it came. The library keeps it as long as the call lasts, but its bytes are needed only once. */
export class Envelope {
  from: Sender | undefined = undefined;
  #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  open(): Uint8Array {
    const bytes = this.#bytes;
    this.#bytes = EMPTY;
    return bytes;
  }
}
