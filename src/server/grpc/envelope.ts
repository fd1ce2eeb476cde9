const EMPTY = new Uint8Array();

/** A message as it came. The library keeps it as long as the call lasts, but its bytes are needed only once. */
export class Envelope {
  /** The address of the sender, without a port. */
  from: string | undefined = undefined;
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
