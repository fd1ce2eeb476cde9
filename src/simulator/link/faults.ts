import type { LinkPlatform, Reordering } from "./link-platform.ts";

/** Injects faults between an agent and the platform. */
export class LinkFaults {
  readonly #platform: LinkPlatform;
  readonly #agentId: string;

  constructor(platform: LinkPlatform, agentId: string) {
    this.#platform = platform;
    this.#agentId = agentId;
  }

  /** Closes with a close frame, as the platform does when the agent connects from elsewhere. */
  kick(code = 1000, reason = ""): void {
    for (const connection of this.#platform.connections(this.#agentId)) connection.kick(code, reason);
  }

  /** Closes without a close frame: the agent sees 1006, but frames it had sent arrive. */
  drop(): void {
    for (const connection of this.#platform.connections(this.#agentId)) connection.drop();
  }

  /** Aborts the connection; frames in flight in either direction are lost. */
  cut(): void {
    for (const connection of this.#platform.connections(this.#agentId)) connection.cut();
  }

  /** Connections stay open, but nothing is read or answered any more, pings included. */
  freeze(): void {
    for (const connection of this.#platform.connections(this.#agentId)) connection.frozen = true;
  }

  /** Sends every frame to the agent this many additional times, byte for byte. */
  duplicate(copies: number): void {
    this.#platform.copies = copies;
  }

  /** Sends the last frame again, byte for byte. */
  repeatLast(): void {
    this.#platform.repeatLast();
  }

  /** The default delay is slightly below the 300 ms after which ends are known to be safe. */
  reorder(reordering: Reordering = { aboveBytes: 2048, delayMs: 250 }): void {
    this.#platform.reordering = reordering;
  }

  inOrder(): void {
    this.#platform.reordering = undefined;
  }

  /** Refuses new connections with this status until called without one. */
  refuse(status?: number): void {
    this.#platform.refusal = status;
  }

  /** Sends any text, unmodified. */
  send(text: string): void {
    this.#platform.sendRaw(this.#agentId, text);
  }
}
