/** Deliveries: cursors on the logs of tasks, each with a claim. Part of `contract.ts`. */
import type { Append, Scope, Submit, Write } from "./contract.ts";

/** The route of push notification configs: callers register, read and delete them. All other routes are the server's. */
export const WEBHOOK_ROUTE = "webhook";

/**
 * Where events of a task are delivered: a webhook, the peer of a link, a phone, a chat room. The log is the outbox: what
 * follows the cursor is still to be delivered.
 */
export interface DeliveryRegistration {
  /** Unique within the task among the deliveries of its group. */
  readonly id: string;
  /** Who delivers it: `webhook`, or the name of a carrier. */
  readonly route: string;
  /** Where to, as the route understands it: a URL, or JSON text. */
  readonly address: string;
  /** JSON text that is never shown, such as the credentials that a webhook asked for. */
  readonly secret?: string;
  /** The interface it was registered over: the receiver expects its encoding. */
  readonly dialect: string;
  /** `events`: due whenever the log has grown. `outcome`: due only once the task has ended or is interrupted. */
  readonly wants: "events" | "outcome";
  /** Claimed by this node with the write that registers it, so that beginning to deliver costs no write of its own. */
  readonly heldBy?: { readonly node: string; readonly ttlMs: number };
}

/** Callers choose the ids of webhooks, so the ids of the two groups are kept apart. */
export type DeliveryGroup = "webhooks" | "replies";

export interface StoredDelivery extends Omit<DeliveryRegistration, "heldBy"> {
  readonly taskId: string;
  readonly createdAt: number;
  /** Number of the newest event that need not be delivered. */
  readonly cursor: number;
}

export interface OwnedDelivery {
  readonly delivery: StoredDelivery;
  /** Whose task it is. */
  readonly scope: Scope;
}

/**
 * Register a delivery of a task, ended or not. One of the same group and id is replaced in every member but keeps its
 * place, its time of creation and its cursor: what was not delivered to the old address goes to the new one, and at once
 * if it is due, even if the old one had been given up. `missing` also for a task of another scope.
 */
export interface DeliveryPut extends Scope {
  readonly kind: "delivery-put";
  /** Of the task. */
  readonly id: string;
  readonly delivery: DeliveryRegistration;
  /** Cursor of a delivery that is new; absent: the newest event of the task. */
  readonly after?: number;
}

/** Accepted also if the task has no such delivery. `missing` also for a task of another scope. */
export interface DeliveryDelete extends Scope {
  readonly kind: "delivery-delete";
  /** Of the task. */
  readonly id: string;
  readonly group: DeliveryGroup;
  readonly deliveryId: string;
}

/** Whether the write may change a delivery that is under way: what progress is written with it would be lost. */
export function registersDeliveries(write: Write): write is DeliveryPut | DeliveryDelete | Submit | Append {
  if (write.kind === "submit" || write.kind === "append") return write.deliveries !== undefined;
  return write.kind === "delivery-put" || write.kind === "delivery-delete";
}

/** What came of delivering. `missing`: the delivery is gone. `fenced`: it was replaced, or claimed by another node. */
export interface DeliveryProgress {
  readonly kind: "delivery-progress";
  /** Of the task. */
  readonly id: string;
  readonly place: number;
  readonly claim: number;
  /** Number of the newest event that was delivered. When it advances, earlier failures no longer count. */
  readonly cursor: number;
  readonly next:
    | { readonly kind: "hold"; readonly ttlMs: number }
    /** Whatever is left is due at once. */
    | { readonly kind: "release" }
    | { readonly kind: "retry"; readonly inMs: number; readonly error: string }
    /** Given up: nothing more is delivered until `redeliver` is called. */
    | { readonly kind: "dead"; readonly error: string }
    /** Nothing will ever be left: the delivery is deleted. */
    | { readonly kind: "done" };
}

export interface DeliveryClaimQuery {
  readonly node: string;
  readonly route: string;
  readonly max: number;
  /** The claim ends by itself after this, unless progress is written before. */
  readonly ttlMs: number;
  /** Deliveries of one lane that are claimed at the same time, at most. */
  readonly perLane: number;
  /** Lanes in which this node delivers now, and how much in each: it counts towards `perLane`. */
  readonly busy: ReadonlyMap<string, number>;
}

/** A delivery that no other node touches while the claim holds. */
export interface DeliveryClaim {
  readonly delivery: StoredDelivery;
  /** Identifies this delivery forever: one that is deleted and registered again has another place. */
  readonly place: number;
  /** A claim made later has a higher number, and with it progress under this one is refused. */
  readonly claim: number;
  /** Failed attempts for the event after the cursor. */
  readonly attempts: number;
  /** What concurrency is counted by: the host of a webhook, the route of any other delivery. */
  readonly lane: string;
  /** Whose task it is. */
  readonly scope: Scope;
}

export interface DeliveryClaims {
  readonly claims: readonly DeliveryClaim[];
  /** Until the next delivery of the route is due that is not yet; absent: there is none. */
  readonly nextInMs?: number;
}

export interface DeliveryQuery {
  readonly group: DeliveryGroup;
  /** The `next` of the page before. */
  readonly after?: number;
  readonly limit: number;
}

export interface DeliveryPage {
  readonly deliveries: readonly StoredDelivery[];
  /** Absent on the last page. */
  readonly next?: number;
  /** Whose task it is. */
  readonly scope: Scope;
}

/** A delivery that has something left to deliver, for operators. Nothing of it is secret but perhaps its address. */
export interface PendingDelivery {
  readonly place: number;
  readonly taskId: string;
  readonly deliveryId: string;
  readonly route: string;
  readonly address: string;
  readonly dialect: string;
  readonly scope: Scope;
  readonly cursor: number;
  /** Number of the newest event of the task. */
  readonly number: number;
  readonly attempts: number;
  /** When it is attempted (again), or when the claim of the node that is delivering ends. */
  readonly dueAt?: number;
  readonly lastError?: string;
  readonly deadAt?: number;
}

export interface PendingDeliveryQuery {
  /** Place of the last one of the page before. */
  readonly after?: number;
  readonly limit: number;
  /** Only those that were given up. */
  readonly dead?: boolean;
  readonly taskId?: string;
}

export interface Redelivery {
  /** Absent: all that were given up. */
  readonly taskId?: string;
  readonly deliveryId?: string;
  /** Deliver again from this event on; absent: from the first that was not delivered. Requires a task. */
  readonly from?: number;
}

/** A delivery that was made due again. */
export interface Redelivered {
  readonly taskId: string;
  readonly deliveryId: string;
  readonly dialect: string;
  /** Whose task it is. */
  readonly scope: Scope;
}
