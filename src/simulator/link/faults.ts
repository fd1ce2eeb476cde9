import type { LinkPlatform, Reordering } from "./link-platform.ts";

/** What can go wrong between an agent and the platform, at will. */
export class LinkFaults {
  readonly #platform: LinkPlatform;
  readonly #agentId: string;

  constructor(platform: LinkPlatform, agentId: string) {
    this.#platform = platform;
    this.#agentId = agentId;
  }

  /** Closes the connection politely, as the platform does when the agent connects from elsewhere. */
  kick(code = 1000, reason = ""): void {
    for (const connection of this.#platform.connections(this.#agentId)) connection.kick(code, reason);
  }

  /** Closes without a word: the agent sees 1006, but what it had sent arrives. */
  drop(): void {
    for (const connection of this.#platform.connections(this.#agentId)) connection.drop();
  }

  /** Tears the connection; what was on its way in either direction is lost. */
  cut(): void {
    for (const connection of this.#platform.connections(this.#agentId)) connection.cut();
  }

  /** The connections stay open but nothing is read or answered any more, pings included. */
  freeze(): void {
    for (const connection of this.#platform.connections(this.#agentId)) connection.frozen = true;
  }

  /** Every frame to the agent so many times more, byte for byte. */
  duplicate(copies: number): void {
    this.#platform.copies = copies;
  }

  /** The last frame once more, byte for byte. */
  repeatLast(): void {
    this.#platform.repeatLast();
  }

  /** A delay somewhat below the 300 ms after which ends are known to be safe. */
  reorder(reordering: Reordering = { aboveBytes: 2048, delayMs: 250 }): void {
    this.#platform.reordering = reordering;
  }

  inOrder(): void {
    this.#platform.reordering = undefined;
  }

  /** New connections are refused with this status until it is called without one. */
  refuse(status?: number): void {
    this.#platform.refusal = status;
  }

  /** Anything at all, as it is. */
  send(text: string): void {
    this.#platform.sendRaw(this.#agentId, text);
  }
}
