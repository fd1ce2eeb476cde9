import type { LogEntry } from "../../model/event.ts";
import { type DeliveryRegistration, WEBHOOK_ROUTE } from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";
import { attemptNumber, type OpenDelivery } from "./open-delivery.ts";
import type { PushAttempt, PushOutcome, PushSender, Webhook, WebhookSecret } from "./push-sender.ts";
import type { DeliveryRoute } from "./route-worker.ts";

/** What the receiver is to know us by, as a delivery keeps it. */
export function toWebhookSecret(secret: WebhookSecret): { readonly secret?: string } {
  const text = JSON.stringify(secret);
  return text === "{}" ? {} : { secret: text };
}

export function toWebhook({ id, address, secret, dialect }: Omit<DeliveryRegistration, "heldBy">): Webhook {
  return { id, url: address, dialect, ...(secret === undefined ? undefined : (JSON.parse(secret) as WebhookSecret)) };
}

/** After this many events a webhook goes to the end of the line, so that a long log does not keep its place for ever. */
const MAX_EVENTS_PER_CLAIM = 32;

/**
 * Sends the events of tasks to webhooks: at least once, in order for each, with one attempt under way for each. What was
 * sent but not yet written down when the process dies is sent again. A receiver that is slow delays only its own events.
 */
export function createWebhookRoute(context: EngineContext, sender: PushSender): DeliveryRoute {
  const { limits } = context;
  return {
    route: WEBHOOK_ROUTE,
    concurrency: limits.pushConcurrency,
    perLane: limits.pushPerHost,
    deliver: (delivery) => sendEvents(context, sender, delivery),
  };
}

async function sendEvents(context: EngineContext, sender: PushSender, delivery: OpenDelivery): Promise<void> {
  const { record, signal } = delivery;
  const read = async (after: number): Promise<readonly LogEntry[]> => {
    const entries = (await delivery.read(after)) ?? [];
    return sender.sendsWholeTask(record.dialect) ? dropSupersededChunks(entries) : entries;
  };
  let { cursor } = record;
  let entries = await read(cursor);
  for (let sent = 1; ; sent++) {
    const [entry] = entries;
    if (entry === undefined) break;
    const outcome = await attempt(context, sender, delivery, entry);
    // A delivery that is aborted is released by the engine, at the cursor it was last held with.
    if (!outcome.ok) return signal.aborted ? undefined : fail(context, delivery, cursor, entry.number, outcome);
    report(context, delivery, cursor, { event: entry.number, result: "delivered" });
    context.meter.count("push_delivered");
    cursor = entry.number;
    // Read before anything is written: a log that keeps growing is sent under one claim, one that rests costs no second write.
    entries = entries.length > 1 ? entries.slice(1) : await read(cursor);
    if (entries.length === 0 || sent >= MAX_EVENTS_PER_CLAIM || signal.aborted) break;
    if (!(await delivery.hold(cursor))) return;
  }
  await delivery.release(cursor);
}

async function attempt(
  { clock, times, log }: EngineContext,
  sender: PushSender,
  delivery: OpenDelivery,
  frame: LogEntry,
): Promise<PushOutcome> {
  const { record, signal } = delivery;
  const controller = new AbortController();
  const abort = () => controller.abort();
  const cancelTimer = clock.after(times.pushTimeoutMs, abort);
  const late = new Promise<PushOutcome>((resolve) => {
    controller.signal.addEventListener("abort", () => resolve(TIMED_OUT), { once: true });
  });
  signal.addEventListener("abort", abort, { once: true });
  const task = async () => {
    const found = await delivery.task(frame.number);
    if (found === undefined) throw new Error("The task is gone.");
    return found;
  };
  const config = { ...toWebhook(record), taskId: record.taskId };
  try {
    return await Promise.race([sender.send({ config, frame, task }, controller.signal), late]);
  } catch (error) {
    log.error({ err: error, task: record.taskId, config: record.id }, "A push notification could not be made.");
    return { ok: false, reason: "the notification could not be made" };
  } finally {
    cancelTimer();
    signal.removeEventListener("abort", abort);
  }
}

async function fail(
  context: EngineContext,
  delivery: OpenDelivery,
  cursor: number,
  event: number,
  { reason, final = false }: Extract<PushOutcome, { ok: false }>,
): Promise<void> {
  context.meter.count("push_failed");
  const isDead = final ? await delivery.giveUp(cursor, reason) : (await delivery.retry(cursor, reason)) === "given-up";
  if (isDead) context.meter.count("push_dead");
  report(context, delivery, cursor, { event, result: isDead ? "given-up" : "failed", reason });
}

function report(
  { onPushAttempt }: EngineContext,
  delivery: OpenDelivery,
  cursor: number,
  attempted: Pick<PushAttempt, "event" | "result" | "reason">,
): void {
  const { record, scope, lane } = delivery;
  onPushAttempt({ delivery: record, scope, lane, attempt: attemptNumber(delivery, cursor), ...attempted });
}

const TIMED_OUT: PushOutcome = { ok: false, reason: "no answer in time" };

/** Without chunks that a later event, which shows them too, has already passed. */
function dropSupersededChunks(entries: readonly LogEntry[]): readonly LogEntry[] {
  return entries.filter((entry, index) => index === entries.length - 1 || entry.state !== undefined);
}
