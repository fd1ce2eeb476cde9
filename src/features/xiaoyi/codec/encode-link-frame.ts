/**
 * Encodes what an agent sends on a link. Answers are JSON strings inside a JSON envelope: the platform accepts nothing
 * else.
 */

/** The first frame of every connection; it is not answered. */
export function toIntroduction(agentId: string): string {
  return JSON.stringify({ msgType: "clawd_bot_init", agentId });
}

export function toHeartbeat(agentId: string): string {
  return JSON.stringify({ msgType: "heartbeat", agentId });
}

/** The recipient of an answer. */
export interface AnswerAddress {
  readonly agentId: string;
  /** The conversation, not the app's session id, which changes whenever the app is opened. */
  readonly sessionId: string;
  readonly taskId: string;
}

/** `detail` is a JSON-RPC response. */
export function toAnswer({ agentId, sessionId, taskId }: AnswerAddress, detail: string): string {
  return JSON.stringify({ msgType: "agent_response", agentId, sessionId, taskId, msgDetail: detail });
}
