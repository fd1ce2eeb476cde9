import type { ReplyTo } from "../../model/operation.ts";
import { type DeliveryRegistration, type Scope, type StoredDelivery, WEBHOOK_ROUTE } from "../../store/contract.ts";
import type { EngineContext } from "../options.ts";
import type { Runner } from "../runs/runner.ts";
import { claimTime } from "./open-delivery.ts";
import { type DeliveryRoute, RouteWorker } from "./route-worker.ts";

/** Takes deliveries that are due from the store and hands them to their routes; no commit ever waits for a receiver. */
export class Deliveries {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #workers = new Map<string, RouteWorker>();
  readonly #unsubscribe: () => void;
  #started = false;
  /** What this node publishes comes back to it, which knows better which routes it is about. */
  #publishing = false;

  constructor(context: EngineContext, runner: Runner) {
    this.#context = context;
    this.#runner = runner;
    runner.committer.onDeliveries((due, held) => {
      for (const claim of held) this.#workers.get(claim.delivery.route)?.begin(claim, true);
      if (due.length > 0) this.#notifyDue(due);
    });
    this.#unsubscribe = context.store.wakeups.subscribe((wakeup) => {
      if (wakeup === "all" || (wakeup.deliveries === true && !this.#publishing)) this.#lookAll();
    });
  }

  /** Returns how to end it: what is under way is released then. */
  serve(route: DeliveryRoute): () => Promise<void> {
    const name = route.route;
    if (this.#workers.has(name)) throw new TypeError(`The delivery route "${name}" is served already.`);
    const worker = new RouteWorker(this.#context, this.#runner, route);
    this.#workers.set(name, worker);
    if (this.#started) worker.look();
    return () => {
      if (this.#workers.get(name) === worker) this.#workers.delete(name);
      return worker.stop();
    };
  }

  start(): void {
    this.#started = true;
    this.#lookAll();
  }

  #lookAll(): void {
    if (!this.#started) return;
    for (const worker of this.#workers.values()) worker.look();
  }

  /** Here and on the nodes that serve what is not served here, or have room for it. */
  #notifyDue(routes: readonly string[]): void {
    for (const route of routes) this.#workers.get(route)?.look();
    this.#publishing = true;
    this.#context.store.wakeups.publish({ deliveries: true });
    this.#publishing = false;
  }

  /** Resolves when everything under way is released, so that other nodes can take it up. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()));
  }

  /** Deliveries of a route that are under way. */
  countOf(route: string): number {
    return this.#workers.get(route)?.size ?? 0;
  }

  /** As it is written with a message. A node that serves the route holds it from the start. */
  toRegistration(reply: ReplyTo, dialect: string): DeliveryRegistration {
    const { id, route, address, wants } = reply;
    const isServed = this.#workers.has(route);
    const heldBy = isServed ? { node: this.#context.node, ttlMs: claimTime(this.#context) } : undefined;
    return { id, route, address, wants, dialect, heldBy };
  }

  /**
   * Registers a delivery for a task that exists; one of the same id gets the new address and keeps its cursor. `after`
   * is the cursor of one that is new. False: the task is gone.
   */
  async put(
    scope: Scope,
    taskId: string,
    { dialect, after, ...reply }: ReplyTo & { readonly dialect: string; readonly after?: number },
  ): Promise<boolean> {
    const { agent, tenant, owner } = scope;
    const delivery = { ...reply, dialect };
    const cursor = after === undefined ? undefined : { after };
    const write = { kind: "delivery-put" as const, agent, tenant, owner, id: taskId, delivery, ...cursor };
    this.#supersede(taskId, reply.id);
    return (await this.#runner.committer.write(write)).ok;
  }

  async delete({ agent, tenant, owner }: Scope, taskId: string, deliveryId: string): Promise<void> {
    const which = { id: taskId, group: "replies" as const, deliveryId };
    this.#supersede(taskId, deliveryId);
    await this.#runner.committer.write({ kind: "delivery-delete", agent, tenant, owner, ...which });
  }

  /** Before the write that ends it: what the write makes due must not be aborted. Webhooks have ids of their own. */
  #supersede(taskId: string, deliveryId: string): void {
    for (const [route, worker] of this.#workers) if (route !== WEBHOOK_ROUTE) worker.supersede(taskId, deliveryId);
  }

  async find(taskId: string, deliveryId: string): Promise<StoredDelivery | undefined> {
    return (await this.#context.store.delivery(taskId, "replies", deliveryId))?.delivery;
  }
}
