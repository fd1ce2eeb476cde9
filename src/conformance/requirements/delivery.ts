import type { RequirementRows } from "./index.ts";

/** Streams and push notifications. */
export const DELIVERY_REQUIREMENTS = {
  "CORE-CAP-002": {
    level: "MUST",
    sections: { "1.0": "3.3.4", "0.3": "8.2" },
    title: "An agent that does not stream refuses both streaming operations",
  },
  "CORE-STREAM-001": {
    level: "MUST",
    sections: { "1.0": "3.1.2", "0.3": "7.2" },
    title: "A message can be sent for a stream of events",
  },
  "CORE-STREAM-002": {
    level: "MUST",
    sections: { "1.0": "3.1.2" },
    title: "A reply without a task is one event, then the stream ends",
  },
  "CORE-STREAM-003": {
    level: "MUST",
    sections: { "1.0": "3.1.2" },
    title: "The stream of a task begins with the task and ends when the task does",
  },
  "CORE-STREAM-004": {
    level: "MUST",
    sections: { "1.0": "3.1.2", "0.3": "7.2" },
    title: "What the events add up to is the task that can be read afterwards",
  },
  "STREAM-SUB-001": {
    level: "MUST",
    sections: { "1.0": "3.1.6" },
    title: "A subscription begins with the task as it is",
  },
  "STREAM-SUB-002": {
    level: "MUST",
    sections: { "1.0": "3.1.6", "0.3": "7.9" },
    title: "A subscription ends when the task does",
  },
  "STREAM-SUB-003": {
    level: "MUST",
    sections: { "1.0": "3.1.6" },
    title: "Subscribing to a task that has ended is refused without a stream",
  },
  "STREAM-SUB-004": {
    level: "MUST",
    sections: { "1.0": "3.1.6", "0.3": "8.2" },
    title: "Subscribing to an unknown task is refused without a stream",
  },
  "STREAM-ORDER-003": {
    level: "MUST",
    sections: { "1.0": "3.5.2" },
    title: "All streams of a task have the same events in the same order",
  },
  "STREAM-ORDER-004": {
    level: "MUST",
    sections: { "1.0": "3.5.2" },
    title: "Closing one stream leaves the others alone",
  },
  "STREAM-LEAVE-001": {
    level: "MUST",
    sections: { "1.0": "3.5.2" },
    title: "A task continues when its client leaves",
  },
  "STREAM-FRAME-001": {
    level: "MUST",
    sections: { "1.0": "5.3", "0.3": "3.3" },
    title: "Events are framed as the binding says",
  },
  "CORE-CAP-001": {
    level: "MUST",
    sections: { "1.0": "3.3.4", "0.3": "8.2" },
    title: "Without the capability, all operations on push configs say so",
  },
  "PUSH-CREATE-001": {
    level: "MUST",
    sections: { "1.0": "3.1.7", "0.3": "7.5" },
    title: "A new push config gets an id and is returned",
  },
  "PUSH-INLINE-001": {
    level: "MUST",
    sections: { "1.0": "3.2.2", "0.3": "7.1.1" },
    title: "A push config sent with a message is there",
  },
  "PUSH-GET-001": {
    level: "MUST",
    sections: { "1.0": "3.1.8", "0.3": "7.6" },
    title: "A push config can be read",
  },
  "PUSH-GET-002": {
    level: "MUST",
    sections: { "1.0": "3.1.8", "0.3": "7.6" },
    title: "Reading a push config that does not exist fails",
  },
  "PUSH-LIST-001": {
    level: "MUST",
    sections: { "1.0": "3.1.9", "0.3": "7.7" },
    title: "All push configs of a task are listed",
  },
  "PUSH-DEL-001": {
    level: "MUST",
    sections: { "1.0": "3.1.10", "0.3": "7.8" },
    title: "A deleted push config is gone",
  },
  "PUSH-DEL-002": {
    level: "MUST",
    sections: { "1.0": "3.1.10" },
    title: "Deleting a push config twice is not an error",
  },
  "PUSH-DELIVER-001": {
    level: "MUST",
    sections: { "1.0": "4.3.3" },
    title: "Webhooks get the credentials they were registered with",
  },
  "PUSH-DELIVER-002": {
    level: "MUST",
    sections: { "1.0": "4.3.3", "0.3": "9.5" },
    title: "Every webhook is called at least once",
  },
  "PUSH-DELIVER-003": {
    level: "MUST",
    sections: { "1.0": "4.3.3", "0.3": "9.5" },
    title: "The body of a webhook is what the version says: a stream response, or the task in 0.3",
  },
  "PUSH-DELIVER-004": {
    level: "SHOULD",
    sections: { "1.0": "4.3.3", "0.3": "9.5" },
    title: "A webhook has the version's content type, and in 0.3 the token's header",
  },
  "PUSH-SSRF-001": {
    level: "SHOULD",
    sections: { "1.0": "13.2", "0.3": "10.2" },
    title: "Link-local webhook targets are refused",
  },
} as const satisfies RequirementRows;
