import type { RequirementRows } from "./index.ts";

/** Sending, tasks and lists. */
export const OPERATION_REQUIREMENTS = {
  "CORE-SEND-001": {
    level: "MUST",
    sections: { "1.0": "3.1.1", "0.3": "7.1" },
    title: "A send is answered with either a task or a message",
  },
  "CORE-SEND-002": {
    level: "MUST",
    sections: { "1.0": "3.1.1", "0.3": "7.1" },
    title: "A message to a task that has ended is refused",
  },
  "CORE-SEND-003": {
    level: "MUST",
    sections: { "1.0": "3.1.1" },
    title: "Content the agent does not take is refused",
  },
  "CORE-EXECUTION-MODE-001": {
    level: "MUST",
    sections: { "1.0": "3.2.2" },
    title: "A send waits until the task has ended or is interrupted",
  },
  "CORE-EXECUTION-MODE-002": {
    level: "MUST",
    sections: { "1.0": "3.2.2" },
    title: "returnImmediately gives the answer while the task runs",
  },
  "CORE-EXECUTION-MODE-003": {
    level: "MUST",
    sections: { "1.0": "3.2.2" },
    title: "A blocking answer has all artifacts and the latest status",
  },
  "CORE-EXECUTION-MODE-004": {
    level: "MUST",
    sections: { "1.0": "3.2.2" },
    title: "A blocking send returns when input or authentication is required",
  },
  "CORE-MULTI-001a": {
    level: "MUST",
    sections: { "1.0": "3.4.1", "0.3": "6.1" },
    title: "A context id that was generated is in the answer",
  },
  "CORE-MULTI-002a": {
    level: "MUST",
    sections: { "1.0": "3.4.1" },
    title: "The context id of the client is taken or refused, never replaced",
  },
  "CORE-MULTI-003": {
    level: "MUST",
    sections: { "1.0": "3.4.2", "0.3": "6.1" },
    title: "Task ids are made by the server and unique",
  },
  "CORE-MULTI-004": {
    level: "MUST",
    sections: { "1.0": "3.4.2", "0.3": "8.2" },
    title: "A message to an unknown task is refused and creates none",
  },
  "CORE-MULTI-005": {
    level: "MUST",
    sections: { "1.0": "3.4.3" },
    title: "A message with only a task id belongs to the context of the task",
  },
  "CORE-MULTI-006": {
    level: "MUST",
    sections: { "1.0": "3.4.3" },
    title: "A context id other than that of the task is refused",
  },
  "CORE-ERR-002": {
    level: "MUST",
    sections: { "1.0": "3.3.2", "0.3": "10.2" },
    title: "A missing required member is refused before any work starts",
  },
  "DM-PARTS-001": {
    level: "MUST",
    sections: { "1.0": "5.7" },
    title: "A message without parts is refused",
  },
  "CORE-GET-001": {
    level: "MUST",
    sections: { "1.0": "3.1.3", "0.3": "7.3" },
    title: "A task can be read as it is",
  },
  "CORE-GET-002": {
    level: "MUST",
    sections: { "1.0": "3.1.3", "0.3": "8.2" },
    title: "An unknown task is not found",
  },
  "CORE-HIST-001": {
    level: "SHOULD",
    sections: { "1.0": "3.2.4" },
    title: "historyLength 0 leaves the history out",
  },
  "CORE-HIST-002": {
    level: "MUST",
    sections: { "1.0": "3.2.4", "0.3": "7.3.1" },
    title: "historyLength is never exceeded, and the newest messages are kept",
  },
  "CORE-HIST-003": {
    level: "SHOULD",
    sections: { "1.0": "3.2.4" },
    title: "historyLength 0 with a message leaves the history out of the answer",
  },
  "CORE-HIST-005": {
    level: "SHOULD",
    sections: { "1.0": "3.2.4" },
    title: "The history is in the order in which it was said",
  },
  "CORE-CANCEL-001": {
    level: "MUST",
    sections: { "1.0": "3.1.5", "0.3": "7.4" },
    title: "A task that has not ended can be cancelled and is returned as it is then",
  },
  "CORE-CANCEL-002": {
    level: "MUST",
    sections: { "1.0": "3.1.5", "0.3": "8.2" },
    title: "A task that has ended cannot be cancelled",
  },
  "CORE-CANCEL-003": {
    level: "MUST",
    sections: { "1.0": "3.1.5", "0.3": "8.2" },
    title: "An unknown task cannot be cancelled: not found",
  },
  "CORE-CANCEL-004": {
    level: "MUST",
    sections: { "1.0": "3.3.1" },
    title: "Two cancellations have the effect of one",
  },
  "CORE-TASK-001": {
    level: "MUST",
    sections: { "1.0": "4.1.3", "0.3": "6.3" },
    title: "A task that has ended does not change any more",
  },
  "CORE-LIST-002": {
    level: "MUST",
    sections: { "1.0": "3.1.4" },
    title: "A walk over the pages gives each task once",
  },
  "CORE-LIST-003": {
    level: "MUST",
    sections: { "1.0": "3.1.4" },
    title: "Lists are ordered by the time of the status, newest first",
  },
  "CORE-LIST-004": {
    level: "MUST",
    sections: { "1.0": "3.1.4" },
    title: "Every page has its four members, the last one an empty token",
  },
  "CORE-LIST-005": {
    level: "MUST",
    sections: { "1.0": "3.1.4" },
    title: "Artifacts are listed only when asked for",
  },
  "CORE-LIST-006": {
    level: "MUST",
    sections: { "1.0": "3.3.2" },
    title: "Page sizes, tokens, states and lengths that make no sense are refused",
  },
  "CORE-LIST-007": {
    level: "MUST",
    sections: { "1.0": "3.1.4" },
    title: "statusTimestampAfter includes the instant itself",
  },
  "CORE-LIST-008": {
    level: "MUST",
    sections: { "1.0": "3.1.4" },
    title: "Lists are narrowed by context and state",
  },
} as const satisfies RequirementRows;
