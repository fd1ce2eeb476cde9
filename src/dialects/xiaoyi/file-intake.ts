import type { Message } from "../../model/message.ts";

/** Brings the files of a message here: where the platform has them, they are for a short time only. */
export interface FileIntake {
  /** Whether the message has any; it need not wait otherwise. */
  concerns(message: Message): boolean;
  /** The message as an agent can read it. Never rejects: what cannot be had is said in its place. */
  takeIn(message: Message): Promise<Message>;
}

/** The message as it is, where there is nothing to take in or nobody to do so. */
export async function readable(message: Message, intake: FileIntake | undefined): Promise<Message> {
  return intake?.concerns(message) === true ? intake.takeIn(message) : message;
}
