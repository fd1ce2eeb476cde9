import type { Operation, Outcomes } from "../model/operation.ts";

/** What an operation is about, as far as it is known. */
export interface Subject {
  readonly task: string | undefined;
  /** Id of a push config. */
  readonly config: string | undefined;
}

/** A webhook that comes with a message is registered without an answer that names it; the record is to name it. */
export function withNamedConfig<O extends Operation>(operation: O, nextId: () => string): O {
  if (operation.kind !== "send" && operation.kind !== "stream") return operation;
  const config = operation.configuration?.taskPushNotificationConfig;
  if (config === undefined || (config.id !== undefined && config.id !== "")) return operation;
  return {
    ...operation,
    configuration: { ...operation.configuration, taskPushNotificationConfig: { ...config, id: nextId() } },
  };
}

/** What the caller named. */
export function subjectAsked(operation: Operation): Subject {
  switch (operation.kind) {
    case "send":
    case "stream": {
      const { message, chosenId, configuration } = operation;
      return { task: message.taskId ?? chosenId, config: configuration?.taskPushNotificationConfig?.id };
    }
    case "get":
    case "cancel":
    case "subscribe":
      return { task: operation.id, config: undefined };
    case "push-create":
      return { task: operation.taskId, config: operation.config.id };
    case "push-get":
    case "push-delete":
      return { task: operation.taskId, config: operation.id };
    case "push-list":
      return { task: operation.taskId, config: undefined };
    case "list":
    case "extended-card":
      return { task: undefined, config: undefined };
  }
}

/** What came into being, where the caller named nothing. */
export function subjectMade(asked: Subject, kind: Operation["kind"], outcome: Outcomes[Operation["kind"]]): Subject {
  if (outcome === undefined) return asked;
  if (kind === "push-create" && "url" in outcome) return { ...asked, config: outcome.id };
  return "task" in outcome ? { ...asked, task: asked.task ?? outcome.task.id } : asked;
}
