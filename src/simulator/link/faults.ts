import type { AgentConnection } from "./connection.ts";
import type { LinkPlatform, Reordering } from "./link-platform.ts";

/** Injects faults between an agent and the platform. */
export function createLinkFaults(platform: LinkPlatform, agentId: string) {
  const forEach = (act: (connection: AgentConnection) => void): void => platform.connections(agentId).forEach(act);
  return {
    /** Closes with a close frame, as the platform does when the agent connects from elsewhere. */
    kick: (code = 1000, reason = "") => forEach((connection) => connection.kick(code, reason)),
    /** Closes without a close frame: the agent sees 1006, but frames it had sent arrive. */
    drop: () => forEach((connection) => connection.drop()),
    /** Aborts the connection; frames in flight in either direction are lost. */
    cut: () => forEach((connection) => connection.cut()),
    /** Connections stay open, but nothing is read or answered any more, pings included. */
    freeze: () => forEach((connection) => connection.freeze()),
    /** Sends every frame to the agent this many additional times, byte for byte. */
    duplicate(copies: number): void {
      platform.copies = copies;
    },
    /** Sends the last frame again, byte for byte. */
    repeatLast: () => platform.repeatLast(),
    /** The default delay is slightly below the 300 ms after which ends are known to be safe. */
    reorder(reordering: Reordering = { aboveBytes: 2048, delayMs: 250 }): void {
      platform.reordering = reordering;
    },
    inOrder(): void {
      platform.reordering = undefined;
    },
    /** Refuses new connections with this status until called without one. */
    refuse(status?: number): void {
      platform.refusal = status;
    },
    /** Sends any text, unmodified. */
    send: (text: string) => forEach((connection) => connection.send(text)),
  };
}
