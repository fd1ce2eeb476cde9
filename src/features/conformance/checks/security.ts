import { fieldsOf, isObject, listOf } from "../../../core/model/json.ts";
import { type Check, check, ensure, fail, notShown } from "../check.ts";
import { type CheckContext, newId, showError } from "../check-context.ts";
import { show, textOf } from "../json.ts";
import { isAuthenticationError, isError } from "../peers/errors.ts";
import type { OperationName } from "../peers/peer.ts";

function requireOtherCaller(context: CheckContext): void {
  if (!context.options.hasOtherCaller) notShown("there is no second caller; --other-caller gives one");
}

function requireAnonymity(context: CheckContext): void {
  if (context.options.hasCertificate) notShown("every request is made with the client certificate");
}

export const SECURITY_CHECKS: readonly Check<CheckContext>[] = [
  check("extended-card-not-offered", "CORE-CAP-003", async (context) => {
    if (context.declared.extendedCard) notShown("the card offers an extended card");
    await context.expectError("UNSUPPORTED_OPERATION", "GetExtendedAgentCard", {});
  }),
  check("extended-card", "CARD-EXT-002", async (context) => {
    if (!context.declared.extendedCard) notShown("the card offers no extended card");
    if (!context.options.hasCredentials) notShown("there are no credentials to read it with");
    const answer = await context.call("GetExtendedAgentCard", {});
    if (!answer.ok) {
      context.checkError("EXTENDED_AGENT_CARD_NOT_CONFIGURED", answer.error, "GetExtendedAgentCard");
      return;
    }
    const { name, skills } = fieldsOf(answer.wire);
    ensure(typeof name === "string" && Array.isArray(skills), `the extended card is ${show(answer.wire)}`);
  }),
  check("extended-card-for-nobody", "CARD-EXT-001", async (context) => {
    if (!context.declared.extendedCard) notShown("the card offers no extended card");
    requireAnonymity(context);
    const answer = await context.call("GetExtendedAgentCard", {}, { as: "anonymous" });
    if (answer.ok) fail(`the extended card was given to a caller without credentials: ${show(answer.wire)}`);
    const { binding } = context.peer;
    const fits =
      isAuthenticationError(answer.error, binding) ||
      isError(answer.error, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", binding, context.version);
    ensure(fits, `the extended card was refused to a caller without credentials, but as ${showError(answer.error)}`);
  }),
  check("credentials-are-asked-for", "AUTH-SERVER-002", async (context) => {
    if (!context.declared.authenticated) notShown("the card requires no credentials");
    requireAnonymity(context);
    const id = newId();
    const operations: readonly (readonly [OperationName, Readonly<Record<string, unknown>>])[] = [
      ["GetTask", { id }],
      ["CancelTask", { id }],
      ["SendMessage", { message: context.message("tck-complete-task") }],
    ];
    for (const [operation, params] of operations) {
      const answer = await context.call(operation, params, { as: "anonymous" });
      if (answer.ok) fail(`${operation} was answered to a caller without credentials: ${show(answer.wire)}`);
      ensure(
        isAuthenticationError(answer.error, context.peer.binding),
        `${operation} was refused to a caller without credentials, but as ${showError(answer.error)}`,
      );
    }
  }),
  check("tasks-of-others", "AUTH-SCOPE-003", async (context) => {
    requireOtherCaller(context);
    const { id } = await context.completedTask();
    const as = "other" as const;
    const unknown = await context.expectError("TASK_NOT_FOUND", "GetTask", { id: newId() }, { as });
    const foreign = await context.expectError("TASK_NOT_FOUND", "GetTask", { id }, { as });
    ensure(
      unknown.code === foreign.code && unknown.name === foreign.name,
      `a task of another caller is ${showError(foreign)}, an unknown one ${showError(unknown)}`,
    );
    await context.expectError("TASK_NOT_FOUND", "CancelTask", { id }, { as });
    if (!context.declared.push) return;
    const config = { taskId: id, id: "conformance" };
    await context.expectError("TASK_NOT_FOUND", "GetTaskPushNotificationConfig", config, { as });
  }),
  check("lists-of-others", "AUTH-SCOPE-002", async (context) => {
    requireOtherCaller(context);
    if (!context.peer.supports("ListTasks")) notShown("0.3 has no lists");
    const { contextId, id } = await context.completedTask();
    for (const filter of [{}, { contextId }]) {
      const page = fieldsOf(await context.result("ListTasks", filter, { as: "other" }));
      const ids = listOf(page.tasks).map((task) => textOf(fieldsOf(task).id));
      ensure(!ids.includes(id), "a list has a task of another caller");
    }
  }),
  check("other-tenant", "TENANT-001", async (context) => {
    const { tenant } = context.peer.target;
    if (tenant === undefined) notShown("the interface has no tenant");
    const { id } = await context.completedTask();
    const answer = await context.call("GetTask", { id, tenant: `${tenant}-conformance-unknown` });
    if (answer.ok && isObject(answer.result)) fail(`a task is visible under another tenant: ${show(answer.wire)}`);
  }),
];
