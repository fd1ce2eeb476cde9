import type { ServeOptions } from "dragoman";
import type { Endpoint } from "../client/requests.ts";

/** What a contestant serves. Each process serves one agent, so that none pays for unused routes. */
export interface Settings {
  agent: AgentName;
  /** `memory:`, `sqlite:<file>` or `postgres://…?schema=<name>` */
  store: string;
  /** The Xiaoyi platform that the agent connects to. */
  link?: LinkSettings;
  /** `@a2a-js/sdk` only: with push notifications, which cost it something in every send. */
  push?: boolean;
  /** Dragoman only: another agent, served beside. */
  beside?: AgentName;
  /** Dragoman only: further options. */
  options?: Pick<ServeOptions, "times" | "xiaoyi" | "registry">;
}

interface LinkSettings {
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
 * `echo` completes a task with one artifact; `stream` sends as many chunks as the message requests, with the pause it
 * requests before each; `hold` works until it is cancelled, `linger` does the same after sending some output; `ask`
 * requires input at every turn.
 */
export type AgentName = "echo" | "stream" | "hold" | "linger" | "ask";

/** The steps of the measured workflow, each with an agent of its name. */
export const chainSteps = ["outline", "document", "summary"] as const;
/** There are also workflows of so many steps: few and many. */
export const chainLengths = [10, 200] as const;

export interface Memory {
  rss: number;
  heapUsed: number;
  external: number;
}

export type Question = "cpu" | "memory" | "stop";

export type Reply = { ready: Endpoint } | { cpu: number } | { memory: Memory };

/** The content of streamed chunks. It occurs nowhere else on the wire, so counting it counts the text. */
export const chunkCharacter = "~";
export const chunkBytes = 20;
export const chunkText = chunkCharacter.repeat(chunkBytes);

/** Reads how many chunks a message requests and the pause before each, in milliseconds. */
export function requestedChunks(text: string): { count: number; pauseMillis: number } {
  const [count = 0, pauseMillis = 0] = text.split(" ").map(Number);
  return { count, pauseMillis };
}
