/** The webhooks of a task: `task push-config create|get|list|delete`. */

import type { RemoteAgent } from "../../client/options.ts";
import { ProtocolError } from "../../model/errors.ts";
import type { TaskPushNotificationConfig } from "../../model/operation.ts";
import { usageError } from "../errors.ts";
import { readHttpUrl } from "../flag-values.ts";
import { type Output, printJson } from "../output.ts";
import { renderTaskIds } from "../render/task.ts";
import { field } from "../render/text.ts";
import { reportResult } from "../session/report.ts";
import { type ClientFlags, openAgent, type Session, withSession } from "../session/session.ts";

export interface PushConfigCreateFlags extends ClientFlags {
  readonly url: string;
  readonly id?: string;
  readonly token?: string;
  readonly authScheme?: string;
  readonly authCredentials?: string;
}

export function pushConfigCreate(output: Output, taskId: string, flags: PushConfigCreateFlags): Promise<void> {
  return withPushAgent(output, flags, async (session, agent) => {
    const created = await agent.createPushConfig(taskId, readConfig(output, flags));
    await report(session, agent, taskId, created, renderConfig(created));
  });
}

export function pushConfigGet(output: Output, taskId: string, id: string, flags: ClientFlags): Promise<void> {
  return withPushAgent(output, flags, async (session, agent) => {
    const found = await agent.getPushConfig(taskId, id);
    await report(session, agent, taskId, found, renderConfig(found));
  });
}

/** All pages; as one JSON document they form one page without a next page token. */
export function pushConfigList(output: Output, taskId: string, flags: ClientFlags): Promise<void> {
  return withPushAgent(output, flags, async (session, agent) => {
    const configs: TaskPushNotificationConfig[] = [];
    for (let pageToken: string | undefined; pageToken !== ""; ) {
      const page = await agent.listPushConfigs(taskId, { pageToken });
      configs.push(...page.configs);
      pageToken = page.nextPageToken;
    }
    if (session.settings.output === "json" && session.settings.stream) {
      for (const config of configs) printJson(output, config, "line");
      return;
    }
    const text = configs.map((config) => `${renderConfig(config)}\n`).join("") + field("Configs", configs.length);
    await report(session, agent, taskId, { configs, nextPageToken: "" }, text);
  });
}

export function pushConfigDelete(output: Output, taskId: string, id: string, flags: ClientFlags): Promise<void> {
  return withPushAgent(output, flags, async (session, agent) => {
    await agent.deletePushConfig(taskId, id);
    // The protocol's answer is an empty message.
    await report(session, agent, taskId, {}, field("Deleted", id));
  });
}

function withPushAgent(
  output: Output,
  flags: ClientFlags,
  body: (session: Session, agent: RemoteAgent) => Promise<void>,
): Promise<void> {
  return withSession(flags, output, async (session) => {
    const agent = await openAgent(session);
    if (agent.card.capabilities.pushNotifications !== true) {
      throw new ProtocolError("PUSH_NOTIFICATION_NOT_SUPPORTED", "The agent's card does not offer push notifications.");
    }
    await body(session, agent);
  });
}

function readConfig(output: Output, flags: PushConfigCreateFlags): TaskPushNotificationConfig {
  const { authScheme: scheme, id } = flags;
  const token = flags.token ?? process.env.A2ACLI_TOKEN;
  const credentials = flags.authCredentials ?? process.env.A2ACLI_AUTH_CREDENTIALS;
  for (const secret of [token, credentials]) if (secret !== undefined) output.addSecret(secret);
  if (scheme === undefined && flags.authCredentials !== undefined)
    throw usageError("--auth-credentials requires --auth-scheme.");
  readHttpUrl("--url", flags.url);
  return {
    url: flags.url,
    id,
    token,
    authentication: scheme === undefined ? undefined : { scheme, credentials },
  };
}

/**
 * In text, every command that touches a task shows its context and state too (a2a-cli specification, section 11.2). What
 * was asked for is done by then: a task that cannot be read does not make it fail.
 */
async function report(
  session: Session,
  agent: RemoteAgent,
  taskId: string,
  result: object,
  text: string,
): Promise<void> {
  const task =
    session.settings.output === "json" || !session.tasksCanBeRead
      ? undefined
      : await agent.get(taskId, { historyLength: 0 }).catch(() => undefined);
  const ids = task === undefined ? field("Task ID", taskId) : renderTaskIds(task.id, task.contextId, task.status);
  reportResult(session, result, () => `${text}${ids}`);
}

function renderConfig({ authentication, id, token, url }: TaskPushNotificationConfig): string {
  return [
    field("Config ID", id ?? ""),
    field("URL", url),
    token === undefined ? "" : field("Token", "(set)"),
    authentication === undefined ? "" : field("Auth Scheme", authentication.scheme),
  ].join("");
}
