import { isUrlPart, type Message } from "../../model/message.ts";
import { takeSpareBytes } from "./marks.ts";
import type { Language } from "./phone-texts.ts";

/** Brings the files of a message here: where the platform has them, they are for a short time only. */
export interface FileIntake {
  /** Whether the message has any; it need not wait otherwise. */
  concerns(message: Message): boolean;
  /** The message as an agent can read it. Never rejects: what cannot be had is said in its place. */
  takeIn(message: Message, language: Language): Promise<Message>;
}

/** Leaves files where the platform has them: an agent that fetches them needs no other copy. */
export const NO_INTAKE: FileIntake = {
  concerns: ({ parts }) => parts.some(isUrlPart),
  takeIn: async (message) => ({
    ...message,
    parts: message.parts.map((part) => (isUrlPart(part) ? takeSpareBytes(part).part : part)),
  }),
};

/** The message as it is, where there is nothing to take in. */
export async function readable(message: Message, language: Language, intake = NO_INTAKE): Promise<Message> {
  return intake.concerns(message) ? intake.takeIn(message, language) : message;
}
