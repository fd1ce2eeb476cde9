/** What a contestant is asked to serve. Each process serves one agent, so that none pays for routes it does not use. */
export interface Settings {
  agent: AgentName;
  /** `memory:` or `sqlite:<file>` */
  store: string;
  /** The agent dials this platform of Xiaoyi. */
  link?: LinkSettings;
}

export interface LinkSettings {
  url: string;
  /** Of the bare contestant: the whole answer in one frame. */
  onlyFinal?: boolean;
}

export interface LinkCredentials {
  agentId: string;
  ak: string;
  sk: string;
}

/** By which an agent and the platform know each other. */
export const linkCredentials: LinkCredentials = {
  agentId: "measured-agent",
  ak: "measured-key",
  sk: "measured-secret",
};

/**
 * `echo` answers a task with one artifact; `stream` answers with as many chunks as the message says;
 * `hold` works until it is cancelled, and `linger` does so after it has said something; `ask` asks for more input at
 * every turn.
 */
export type AgentName = "echo" | "stream" | "hold" | "linger" | "ask";

export interface Memory {
  rss: number;
  heapUsed: number;
}

export type Question = "cpu" | "memory" | "stop";

/** `grpcPort` where the contestant also answers gRPC. */
export interface Ready {
  port: number;
  path: string;
  grpcPort?: number;
}

export type Reply = { ready: Ready } | { cpu: number } | { memory: Memory };

/** What streamed chunks consist of. It occurs nowhere else on the wire, so counting it counts the text. */
export const chunkCharacter = "~";
export const chunkBytes = 20;
export const chunkText = chunkCharacter.repeat(chunkBytes);
