/** Tasks and push configs have path-like resource names here instead of bare ids. */

import { invalidParams } from "../../model/errors.ts";

/**
 * Default id of a push config. Before 0.2.5 a task had at most one config and setting it again replaced it; official
 * servers preserve that by using the task's id.
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

/** `field`: the field that contains the name, for the error. */
export function parseTaskName(name: string, field: string): string {
  const id = name.startsWith(TASKS) ? name.slice(TASKS.length) : "";
  if (id === "") throw invalidParams(field, 'must be of the form "tasks/{id}"');
  return id;
}

interface PushConfigIds {
  readonly taskId: string;
  /** Empty for a config without an id yet. */
  readonly id: string;
}

/** The collection had another name before 0.2.5. Lazy, so that everything after the first match is the config's id. */
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
