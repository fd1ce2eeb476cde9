import { type Fields, fieldsIn, textIn } from "../json.ts";
import type { ControlAnswer, OutgoingControl } from "../phone/channel.ts";
import { Misread } from "./misread.ts";

const ANSWERS = {
  cancel: ["canceled", "failed", "unknown"],
  clear: ["cleared", "failed", "unknown"],
} as const satisfies Record<OutgoingControl["what"], readonly ControlAnswer[]>;

/** How an agent answered a request to cancel or to clear. Throws `Misread`. */
export function readControlAnswer(result: Fields, { requestId, taskId, what }: OutgoingControl): ControlAnswer {
  const state = fieldsIn(result.status).state;
  const known = ANSWERS[what].find((answer) => answer === state);
  if (known === undefined) throw new Misread(`result.status.state is ${JSON.stringify(state)}.`);
  if (what === "cancel") {
    const id = textIn(result.id);
    if (id === undefined) throw new Misread("result.id is missing.");
    if (id !== requestId && id !== taskId) throw new Misread("result.id is neither the request's id nor the task's.");
  }
  return known;
}
