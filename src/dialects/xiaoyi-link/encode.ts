/** What an agent says on a link. Answers are JSON in the JSON of an envelope: nothing else is accepted. */

/** The first frame of every connection; there is no answer to it. */
export function toIntroduction(agentId: string): string {
  return JSON.stringify({ msgType: "clawd_bot_init", agentId });
}

export function toHeartbeat(agentId: string): string {
  return JSON.stringify({ msgType: "heartbeat", agentId });
}

/** Where an answer belongs. */
export interface AnswerAddress {
  readonly agentId: string;
  /** The conversation, not what the app calls its session: that changes whenever the app is opened. */
  readonly sessionId: string;
  readonly taskId: string;
}

/** `detail` is a JSON-RPC response. */
export function toAnswer({ agentId, sessionId, taskId }: AnswerAddress, detail: string): string {
  return JSON.stringify({ msgType: "agent_response", agentId, sessionId, taskId, msgDetail: detail });
}
