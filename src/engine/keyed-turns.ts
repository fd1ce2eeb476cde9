/** Lets those who act under the same key act one after the other. */
export class KeyedTurns {
  readonly #last = new Map<string, Promise<unknown>>();

  async inTurn<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const turn = before === undefined ? act() : before.then(act, act);
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}
