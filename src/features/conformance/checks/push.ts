import { type Fields, fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import { type Check, check, ensure, Failed, fail, notShown } from "../check.ts";
import { type CheckContext, newId, randomSuffix, requireTask, type SeenTask, showError } from "../check-context.ts";
import type { Exchange } from "../exchange-log.ts";
import { parseJson, show, textOf } from "../json.ts";
import { schemaFor, validate } from "../schema.ts";
import type { Notification } from "../webhook-receiver.ts";

/** A host that does not exist, for configs that are only registered and never called. */
const UNCALLED_URL = "https://webhook.conformance.example/notify";
const METADATA_SERVICE = "http://169.254.169.254/latest/meta-data/";

async function createConfig(context: CheckContext, config: Fields): Promise<Fields> {
  context.requirePush();
  return fieldsOf(await context.result("CreateTaskPushNotificationConfig", config));
}

async function openTaskForPush(context: CheckContext): Promise<SeenTask> {
  context.requirePush();
  return context.openTask();
}

/** A config of an open task, by its ids. */
async function registerConfig(context: CheckContext): Promise<{ readonly taskId: string; readonly id: string }> {
  const { id: taskId } = await openTaskForPush(context);
  return { taskId, id: idOf(await createConfig(context, { taskId, url: UNCALLED_URL })) };
}

const idOf = (config: Fields): string => textOf(config.id) ?? "";

async function listConfigIds(context: CheckContext, taskId: string): Promise<readonly string[]> {
  const { configs } = fieldsOf(await context.result("ListTaskPushNotificationConfigs", { taskId }));
  return listOf(configs).map((config) => idOf(fieldsOf(config)));
}

/** Registers a webhook, triggers a notification and waits for it. */
function deliverOnce(context: CheckContext) {
  context.requirePush();
  return context.once("delivered", () => deliver(context));
}

async function deliver(context: CheckContext) {
  const key = randomSuffix();
  const credentials = newId();
  const token = newId();
  const url = await context.options.webhooks.urlFor(key);
  const config = { url, token, authentication: { scheme: "Bearer", credentials } };
  const message = context.message("tck-complete-task");
  const answer = await context.call("SendMessage", { message, configuration: { taskPushNotificationConfig: config } });
  if (!answer.ok) notShown(`the webhook of this run was refused: ${showError(answer.error)}`);
  const task = requireTask(context.readOutcome(answer.result));
  const notification = await context.options.webhooks.waitForNotification(key, context.options.patienceMs);
  return { notification, credentials, token, task };
}

async function receiveNotification(context: CheckContext) {
  const { notification, ...rest } = await deliverOnce(context);
  return { ...rest, notification: notification ?? notShown("no webhook was called") };
}

export const PUSH_CHECKS: readonly Check<CheckContext>[] = [
  check("push-not-offered", "CORE-CAP-001", async (context) => {
    if (context.declared.push) notShown("the card offers push notifications");
    const { id: taskId } = await context.completedTask();
    const named = { taskId, id: "conformance" };
    await context.expectError("PUSH_NOTIFICATION_NOT_SUPPORTED", "CreateTaskPushNotificationConfig", {
      taskId,
      url: UNCALLED_URL,
    });
    await context.expectError("PUSH_NOTIFICATION_NOT_SUPPORTED", "GetTaskPushNotificationConfig", named);
    await context.expectError("PUSH_NOTIFICATION_NOT_SUPPORTED", "ListTaskPushNotificationConfigs", { taskId });
    await context.expectError("PUSH_NOTIFICATION_NOT_SUPPORTED", "DeleteTaskPushNotificationConfig", named);
  }),
  check("push-create", "PUSH-CREATE-001", async (context) => {
    const { id: taskId } = await openTaskForPush(context);
    const made = await createConfig(context, { taskId, url: UNCALLED_URL });
    ensure(idOf(made) !== "", `a push config has no id: ${show(made)}`);
    ensure(made.url === UNCALLED_URL, `the url became ${show(made.url)}`);
    ensure(made.taskId === taskId, `the task of the config is ${show(made.taskId)}, not ${show(taskId)}`);
  }),
  check("push-create-for-unknown-task", "PUSH-CREATE-001", async (context) => {
    context.requirePush();
    const params = { taskId: newId(), url: UNCALLED_URL };
    await context.expectError("TASK_NOT_FOUND", "CreateTaskPushNotificationConfig", params);
  }),
  check("push-get", "PUSH-GET-001", async (context) => {
    const named = await registerConfig(context);
    const read = fieldsOf(await context.result("GetTaskPushNotificationConfig", named));
    ensure(read.id === named.id && read.url === UNCALLED_URL, `the config reads ${show(read)}`);
  }),
  check("push-get-unknown", "PUSH-GET-002", async (context) => {
    const { id: taskId } = await openTaskForPush(context);
    const params = { taskId, id: newId() };
    const answer = await context.call("GetTaskPushNotificationConfig", params);
    if (answer.ok) fail(`a config that does not exist was returned: ${show(answer.wire)}`);
  }),
  check("push-list", "PUSH-LIST-001", async (context) => {
    const { id: taskId } = await openTaskForPush(context);
    const made = [
      idOf(await createConfig(context, { taskId, url: UNCALLED_URL, id: newId() })),
      idOf(await createConfig(context, { taskId, url: `${UNCALLED_URL}/2`, id: newId() })),
    ];
    const ids = await listConfigIds(context, taskId);
    ensure(
      made.every((id) => ids.includes(id)),
      `${show(made)} were made, and ${show(ids)} are listed`,
    );
  }),
  check("push-delete", "PUSH-DEL-001", async (context) => {
    const named = await registerConfig(context);
    await context.result("DeleteTaskPushNotificationConfig", named);
    const ids = await listConfigIds(context, named.taskId);
    ensure(!ids.includes(named.id), "a deleted config is still listed");
  }),
  check("push-delete-twice", "PUSH-DEL-002", async (context) => {
    const named = await registerConfig(context);
    await context.result("DeleteTaskPushNotificationConfig", named);
    await context.result("DeleteTaskPushNotificationConfig", named);
  }),
  check("push-inline", "PUSH-INLINE-001", async (context) => {
    context.requirePush();
    const message = context.message("tck-input-required");
    const taskPushNotificationConfig = { url: UNCALLED_URL };
    const { id: taskId } = await context.task(message, { taskPushNotificationConfig });
    const { configs } = fieldsOf(await context.result("ListTaskPushNotificationConfigs", { taskId }));
    const urls = listOf(configs).map((config) => fieldsOf(config).url);
    ensure(urls.includes(UNCALLED_URL), `the config sent with the message is not there: ${show(configs)}`);
  }),
  check("push-delivered", "PUSH-DELIVER-002", async (context) => {
    const { notification } = await deliverOnce(context);
    ensure(notification !== undefined, "no webhook was called");
  }),
  check("push-credentials", "PUSH-DELIVER-001", async (context) => {
    const { credentials, notification } = await receiveNotification(context);
    const { authorization } = notification.headers;
    ensure(authorization === `Bearer ${credentials}`, `Authorization is ${show(authorization)}`);
  }),
  check("push-body", "PUSH-DELIVER-003", async (context) => {
    const { notification, task } = await receiveNotification(context);
    const body = parseJson(notification.body);
    ensure(body !== undefined, `the body of a webhook is not JSON: ${show(notification.body)}`);
    // Webhooks of 0.3 receive the task in JSON-RPC format, whichever binding registered them.
    const type = context.version === "1.0" ? "Event" : "Task";
    const [problem] = validate(schemaFor(context.version, "JSONRPC"), type, body);
    if (problem !== undefined) throw new Failed(problem.text, [toExchange(notification)]);
    const named = context.version === "1.0" ? taskIdOf(fieldsOf(body)) : fieldsOf(body).id;
    ensure(named === task.id, `the webhook was called for the task ${show(named)}, not ${show(task.id)}`);
  }),
  check("push-headers", "PUSH-DELIVER-004", async (context) => {
    const { notification, token } = await receiveNotification(context);
    const { "content-type": contentType, "x-a2a-notification-token": sent } = notification.headers;
    const expected = context.version === "1.0" ? "application/a2a+json" : "application/json";
    ensure(contentType?.split(";")[0] === expected, `the content type is ${show(contentType)}, not ${expected}`);
    if (context.version === "0.3") ensure(sent === token, `X-A2A-Notification-Token is ${show(sent)}`);
  }),
  check("push-to-private-address", "PUSH-SSRF-001", async (context) => {
    const { id: taskId } = await openTaskForPush(context);
    const answer = await context.call("CreateTaskPushNotificationConfig", { taskId, url: METADATA_SERVICE });
    if (!answer.ok) return;
    const id = idOf(fieldsOf(answer.result));
    await context.call("DeleteTaskPushNotificationConfig", { taskId, id });
    fail(`a webhook at ${METADATA_SERVICE} was taken`);
  }),
];

/** A webhook call as evidence. */
function toExchange({ body, headers }: Notification): Exchange {
  const relevant = Object.entries(headers).filter(([name]) => /^(content-type|authorization|x-)/.test(name));
  return {
    request: "POST to the webhook",
    requestHeaders: Object.fromEntries(relevant.map(([name, value]) => [name, String(value)])),
    requestBody: body.slice(0, 2_000),
    response: "204",
    responseHeaders: {},
    responseBody: "",
  };
}

function taskIdOf(event: Fields): unknown {
  for (const member of [event.statusUpdate, event.artifactUpdate, event.message]) {
    if (isObject(member)) return member.taskId;
  }
  return fieldsOf(event.task).id;
}
