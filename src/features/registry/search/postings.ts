/**
 * Which documents contain a term, the weightiest first. A posting is one number: the impact of the term in its upper
 * bits, the document's slot in the lower ones, so that sorting numbers sorts by impact.
 */

const SLOT_BITS = 27;
const MAX_SLOTS = 2 ** SLOT_BITS;
const SLOT_MASK = MAX_SLOTS - 1;
/** With the slot it still is a small integer of the engine. */
export const MAX_IMPACT = 15;
/** Postings that may wait to be sorted; a query reads them all. */
const MAX_UNSORTED = 512;

export function toPosting(slot: number, impact: number): number {
  return impact * MAX_SLOTS + slot;
}

export function slotOf(posting: number): number {
  return posting & SLOT_MASK;
}

export function impactOf(posting: number): number {
  return posting >>> SLOT_BITS;
}

export class Postings {
  #data: Uint32Array;
  #length = 0;
  #sorted = 0;

  constructor(capacity = 4) {
    this.#data = new Uint32Array(capacity);
  }

  get length(): number {
    return this.#length;
  }

  add(slot: number, impact: number): void {
    if (this.#length === this.#data.length) {
      const larger = new Uint32Array(Math.ceil(this.#length * 1.5));
      larger.set(this.#data);
      this.#data = larger;
    }
    this.#data[this.#length++] = toPosting(slot, impact);
  }

  /** Ascending up to `sorted`; what follows is in no order. Valid until the next change. */
  read(): { readonly data: Uint32Array; readonly sorted: number; readonly length: number } {
    if (this.#length - this.#sorted > MAX_UNSORTED + (this.#sorted >>> 3) || this.#sorted === 0) {
      this.#data.subarray(0, this.#length).sort();
      this.#sorted = this.#length;
    }
    return { data: this.#data, sorted: this.#sorted, length: this.#length };
  }

  /** The same with other slots, without the documents that `newSlot` maps to a negative number. */
  remapped(newSlot: Int32Array): Postings {
    const kept = new Postings(Math.max(4, this.#length));
    for (let at = 0; at < this.#length; at++) {
      const posting = this.#data[at] as number;
      const slot = newSlot[slotOf(posting)] as number;
      if (slot >= 0) kept.add(slot, impactOf(posting));
    }
    return kept;
  }
}
