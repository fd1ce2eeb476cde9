import { hostname, userInfo } from "node:os";
import { type LogFields, NO_METER } from "../../model/ports.ts";
import { canParseUrl } from "../../model/url.ts";
import { AuditLog, type AuditOptions, type Operator, toRedeliveryRecord } from "../../server/audit/audit-log.ts";
import { systemClock } from "../../server/clock-and-ids.ts";
import { type PendingDelivery, WEBHOOK_ROUTE } from "../../store/contract.ts";
import { CommandError, usageError } from "../errors.ts";
import { ifGiven, readInteger } from "../flag-values.ts";
import { type Output, printJson, printResult } from "../output.ts";
import { field } from "../render/text.ts";
import { type StoreFlags, withStore } from "./store.ts";

export interface PushDeliveriesFlags extends StoreFlags {
  readonly dead?: boolean;
  readonly task?: string;
}

export interface PushRedeliverFlags extends StoreFlags {
  readonly all?: boolean;
  readonly id?: string;
  readonly from?: string;
}

const PAGE_SIZE = 500;

export async function pushDeliveries(output: Output, flags: PushDeliveriesFlags): Promise<void> {
  await withStore(flags, "inspect", async (store) => {
    const which = { dead: flags.dead === true, taskId: flags.task };
    const shown: object[] = [];
    for (let after = 0; ; ) {
      const page = await store.pendingDeliveries({ ...which, after, limit: PAGE_SIZE });
      for (const delivery of page) {
        if (flags.output === "json") shown.push(toJson(delivery));
        else output.write(renderDelivery(delivery));
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE_SIZE) break;
      after = last.place;
    }
    if (flags.output === "json") printJson(output, { store: store.description, deliveries: shown }, "document");
  });
}

export async function pushRedeliver(
  output: Output,
  task: string | undefined,
  flags: PushRedeliverFlags,
): Promise<void> {
  if (task === undefined && flags.all !== true) throw usageError("A task or --all is required.");
  if (task !== undefined && flags.all === true) throw usageError("A task and --all are mutually exclusive.");
  if (task === undefined && (flags.id !== undefined || flags.from !== undefined)) {
    throw usageError("--id and --from require a task.");
  }
  const from = ifGiven(flags.from, (text) => readInteger("--from", text, 1, Number.MAX_SAFE_INTEGER));
  await withStore(flags, "repair", async (store, config) => {
    const audit = await openAudit(output, config?.audit);
    const due = await store.redeliver({ taskId: task, deliveryId: flags.id, from });
    for (const redelivered of due) audit?.record(toRedeliveryRecord(redelivered, currentOperator(), from));
    await audit?.close();
    const count = due.length;
    if (count === 0 && task !== undefined) {
      throw new CommandError(
        "DRAGOMAN_ERR_NOTHING_TO_REDELIVER",
        "The task has no undelivered notifications.",
        "dragoman push deliveries lists all; --from repeats deliveries that succeeded.",
      );
    }
    const text = () => field("Store", store.description) + field("Configs Due Again", count);
    printResult(output, flags.output, { store: store.description, redelivered: count }, text);
    if (count > 0) output.info("The server delivers within a few seconds, if it runs.");
  });
}

/** Appends to the same audit log as the server. Rejects if auditing is required but not possible. */
async function openAudit(output: Output, options: AuditOptions | undefined): Promise<AuditLog | undefined> {
  if (options === undefined) return undefined;
  const print = (_fields: LogFields, message: string) => output.info(message);
  const log = { debug: print, info: print, warn: print, error: print };
  const audit = new AuditLog(options, { clock: systemClock, log, meter: NO_METER });
  try {
    await audit.open();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new CommandError("DRAGOMAN_ERR_UNAUDITED", message, "Nothing was made due again.", { cause: error });
  }
  return audit;
}

function currentOperator(): Operator {
  return { user: userName(), machine: hostname() };
}

/** In a container, the user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `user ${process.getuid?.() ?? "unknown"}`;
  }
}

function toJson(delivery: PendingDelivery): object {
  const { place: _, deliveryId, route, address, scope, dueAt, deadAt, ...rest } = delivery;
  return {
    ...rest,
    configId: deliveryId,
    route,
    agent: scope.agent,
    owner: scope.owner,
    ...(route === WEBHOOK_ROUTE ? { url: withoutQuery(address) } : { address }),
    undelivered: rest.number - rest.cursor,
    dueAt: timeOf(dueAt),
    deadAt: timeOf(deadAt),
  };
}

function renderDelivery(delivery: PendingDelivery): string {
  const { taskId, deliveryId, route, address, cursor, number, attempts, dueAt, deadAt, lastError } = delivery;
  const state = deadAt === undefined ? "waiting" : `given up at ${timeOf(deadAt)}`;
  return [
    field("Task", taskId),
    field("Config", deliveryId),
    ...(route === WEBHOOK_ROUTE
      ? [field("URL", withoutQuery(address))]
      : [field("Route", route), field("Address", address)]),
    field("State", state),
    field("Undelivered Events", number - cursor),
    field("Failed Tries", attempts),
    ...(dueAt === undefined
      ? []
      : [field("Next Try", dueAt <= systemClock.now() ? "now" : new Date(dueAt).toISOString())]),
    ...(lastError === undefined ? [] : [field("Last Error", lastError)]),
    "\n",
  ].join("");
}

const timeOf = (milliseconds: number | undefined) =>
  milliseconds === undefined ? undefined : new Date(milliseconds).toISOString();

/** The query may contain a secret of the task's owner. */
function withoutQuery(url: string): string {
  if (!canParseUrl(url)) return url;
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
