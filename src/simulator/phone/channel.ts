import type { Fields } from "../json.ts";
import type { SimulatedTask } from "../task/simulated-task.ts";

/** Who speaks, in the ids of the platform. */
export interface Sender {
  readonly agentId: string;
  readonly deviceId: string;
  /** New whenever the app is opened. */
  readonly appSessionId: string;
  /** Stays until the user clears the context. */
  readonly conversationId: string;
  /** Empty while the user has not bound an account. */
  readonly loginSessionId: string;
}

export interface OutgoingMessage {
  readonly sender: Sender;
  readonly requestId: string;
  readonly taskId: string;
  readonly messageId: string;
  readonly parts: readonly Fields[];
}

export interface OutgoingControl {
  readonly what: "cancel" | "clear";
  readonly sender: Sender;
  readonly requestId: string;
  readonly taskId: string | undefined;
}

/** In the agent's words, or what happened instead of an answer. */
export type ControlAnswer = "canceled" | "cleared" | "failed" | "unknown" | "error" | "no-answer";

/** How a phone's words reach the agent, and how its words come back to the task. */
export interface Channel {
  /** False if there is nobody to tell. */
  message(message: OutgoingMessage, task: SimulatedTask): boolean;
  control(control: OutgoingControl): Promise<ControlAnswer>;
}
