/** What a contestant serves. Each process serves one agent, so that none pays for unused routes. */
export interface Settings {
  agent: AgentName;
  /** `memory:` or `sqlite:<file>` */
  store: string;
  /** The Xiaoyi platform that the agent connects to. */
  link?: LinkSettings;
}

export interface LinkSettings {
  url: string;
  /** Bare contestant only: send the whole response in one frame. */
  onlyFinal?: boolean;
}

export interface LinkCredentials {
  agentId: string;
  ak: string;
  sk: string;
}

/** Credentials shared by the agent and the platform. */
export const linkCredentials: LinkCredentials = {
  agentId: "measured-agent",
  ak: "measured-key",
  sk: "measured-secret",
};

/**
 * `echo` completes a task with one artifact; `stream` sends as many chunks as the message requests;
 * `hold` works until it is cancelled, `linger` does the same after sending some output; `ask` requires input at every
 * turn.
 */
export type AgentName = "echo" | "stream" | "hold" | "linger" | "ask";

export interface Memory {
  rss: number;
  heapUsed: number;
}

export type Question = "cpu" | "memory" | "stop";

/** `grpcPort` is set if the contestant also serves gRPC. */
export interface Ready {
  port: number;
  path: string;
  grpcPort?: number;
}

export type Reply = { ready: Ready } | { cpu: number } | { memory: Memory };

/** The content of streamed chunks. It occurs nowhere else on the wire, so counting it counts the text. */
export const chunkCharacter = "~";
export const chunkBytes = 20;
export const chunkText = chunkCharacter.repeat(chunkBytes);
