/**
 * What this server itself writes into the status of a task that failed; every other text there is the agent's own. For
 * readers of another language a dialect finds the translation by name. `{}` stands for a value.
 */
export const STATUS_TEXTS = {
  agentFailed: "The agent failed while it worked on this message.",
  agentFailedSeeLog: "The agent failed while it worked on this message; the server's log says why.",
  agentTimedOut: "The agent did not finish within {} s.",
  deadlinePassed: "The caller's deadline passed before the agent finished.",
  agentDidNotReturn: "The agent did not return and was ended.",
  agentDidNotStop: "The agent did not stop in time and was ended.",
  taskTooLong: "The agent wrote more than {} bytes.",
  tasksTooLarge: "The unfinished tasks of this server take up too much memory, and this is one of the largest.",
  partTooLong: "The agent made a part of more than {} characters.",
  processStopped: "The process that ran this task stopped before the task was finished.",
  processStoppedUnasked:
    "The process that ran this task stopped before the task was finished, and the remote agent cannot be asked about the task.",
  processStoppedOften: "The process that ran this task stopped before it was finished, {} times.",
  programNotStarted: "The agent's program could not be started.",
  programExited: "The agent's program exited with code {}.",
  programEnded: "The agent's program was ended by {}.",
  programTooLong: "The agent's program wrote more than {} characters of output.",
  internalError: "The agent could not answer because of an internal error.",
  temporarilyUnavailable: "The server cannot answer at the moment; try again later.",
  answerBrokeOff: "The agent's answer broke off.",
  answerTooLong: "The agent returned more than {} characters.",
  answerTooManyEvents: "The agent sent more than {} events.",
  taskContinued: "The agent continued a task that had ended.",
  taskIdChanged: "The agent changed the id of its task.",
  taskStateWrong: "The agent sent a state that cannot follow the one before.",
  taskFailed: "The agent's task failed.",
  taskCanceled: "The agent's task was canceled.",
  taskRejected: "The agent's task was rejected.",
  stepTimedOut: "Timed out after {} s.",
  runTooLong: "The steps of this run returned more than {} characters.",
  agentCallsItself: "The agent calls itself, and no further run of it may start meanwhile.",
  deliveryUnknown:
    "The process that forwarded this message stopped, and whether the agent received the message is not known.",
  taskLost: "The remote agent no longer has the task that it was working on.",
  cancelRefused: "Canceled here. The remote agent did not cancel its task and may still be working on it.",
  cancelUnconfirmed:
    "Canceled here. Whether the remote agent works on the message is not known: it has not sent the id of a task that could be canceled.",
  peerBusy: "The agent is busy.",
  peerNotConnected: "The agent is not connected.",
  peerLost: "The connection to the agent was lost.",
  peerStayedAway: "The connection to the agent was lost, and it did not come back within {} s.",
  peerSilent: "The agent came back and sent no more of the task.",
  modelUnreachable: "The language model could not be reached.",
  modelRefusedKey: "The language model did not accept the configured API key.",
  modelBusy: "The language model is busy; please try again later.",
  modelBusyFor: "The language model is busy; please try again in {} s.",
  modelFailed: "The language model answered with HTTP status {}.",
  modelReported: "The language model reported an error.",
  modelStopped: "The language model stopped its answer: {}.",
  modelBrokeOff: "The language model's answer broke off.",
  modelUnreadable: "The language model's answer could not be read.",
  modelSaidNothing: "The language model gave no answer.",
  modelSilent: "The language model sent nothing for {} s.",
  modelAnswerTooLong: "The language model's answer was too long.",
  modelFiltered: "The language model's content filter stopped the answer.",
  modelOutOfTokens: "The answer was cut off at the limit of {} tokens.",
  modelCutOff: "The answer was cut off at the length limit of the language model.",
  modelTooManyCalls: "The language model called other agents more than {} times.",
} as const;

export type StatusTextName = keyof typeof STATUS_TEXTS;

export function statusText(name: StatusTextName, value: string | number = ""): string {
  return STATUS_TEXTS[name].replace("{}", () => String(value));
}

interface StatusText {
  readonly name: StatusTextName;
  readonly value: string;
}

const NAMES = Object.keys(STATUS_TEXTS) as StatusTextName[];
/** Values are numbers and names of signals. */
const VALUE = String.raw`([\w.]{1,32})`;
const PATTERNS = NAMES.map((name) => {
  const [before = "", after] = STATUS_TEXTS[name].split("{}").map((text) => text.replaceAll(".", String.raw`\.`));
  return { name, pattern: new RegExp(after === undefined ? `^${before}$` : `^${before}${VALUE}${after}$`) };
});

/** Undefined for what an agent wrote itself. */
export function parseStatusText(text: string): StatusText | undefined {
  for (const { name, pattern } of PATTERNS) {
    const found = pattern.exec(text);
    if (found !== null) return { name, value: found[1] ?? "" };
  }
  return undefined;
}
