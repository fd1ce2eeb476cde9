/** Tasks and push configs are named like files in folders here, not by bare ids. */

import { invalidParams } from "../../model/errors.ts";

/**
 * The id of a push config that was given none. Before 0.2.5 a task had one config at most and setting it again replaced
 * it; the official servers keep to that by naming it after the task.
 */
export function defaultPushConfigId(taskId: string): string {
  return taskId;
}

const TASKS = "tasks/";

export function taskName(taskId: string): string {
  return TASKS + taskId;
}

export function pushConfigName(taskId: string, id: string): string {
  return `${TASKS}${taskId}/pushNotificationConfigs/${id}`;
}

/** `field` is the one that holds the name, for the error. */
export function parseTaskName(name: string, field: string): string {
  const id = name.startsWith(TASKS) ? name.slice(TASKS.length) : "";
  if (id === "") throw invalidParams(field, 'must be of the form "tasks/{id}"');
  return id;
}

interface PushConfigIds {
  readonly taskId: string;
  /** Empty for a config that has yet to be given one. */
  readonly id: string;
}

/** The folder had another name before 0.2.5. Lazy, so that all that follows the first folder is the config's id. */
const PUSH_CONFIG = /^tasks\/(.+?)\/(?:pushNotificationConfigs|pushNotifications)\/(.*)$/s;

export function parsePushConfigName(name: string): PushConfigIds | undefined {
  const match = PUSH_CONFIG.exec(name);
  return match === null ? undefined : { taskId: match[1] as string, id: match[2] as string };
}

export function requirePushConfigName(name: string): PushConfigIds {
  const place = parsePushConfigName(name);
  if (place === undefined || place.id === "") {
    throw invalidParams("name", 'must be of the form "tasks/{id}/pushNotificationConfigs/{id}"');
  }
  return place;
}
