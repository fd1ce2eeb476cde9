/** How far each push config is with telling its task's events, as stores keep it. Part of `contract.ts`. */
import type { Scope, StoredPushConfig } from "./contract.ts";

export interface PushClaimQuery {
  readonly node: string;
  readonly max: number;
  /** The claim ends by itself after this, unless progress is written before. */
  readonly ttlMs: number;
  /** Configs of one host that are claimed at the same time, at most. */
  readonly perHost: number;
  /** Hosts that are being told something now, and how many configs of each: they count towards `perHost`. */
  readonly busy: ReadonlyMap<string, number>;
}

/** A config that nobody else tells anything while the claim holds. */
export interface PushClaim {
  readonly config: StoredPushConfig;
  /** Names this config for ever: one that is deleted and made again has another. */
  readonly place: number;
  /** A claim made later has a higher number, and with it progress under this one is refused. */
  readonly claim: number;
  /** Tries that failed for the event after the cursor. */
  readonly attempts: number;
  /** Of the address, as `perHost` counts. */
  readonly host: string;
  /** Whose task it is. */
  readonly scope: Scope;
}

export interface PushClaims {
  readonly claims: readonly PushClaim[];
  /** When the next config is due that is not yet; absent: none waits. */
  readonly nextAt?: number;
}

/** What came of telling events. `missing`: the config is gone. `fenced`: it was replaced, or claimed by another. */
export interface PushProgress {
  readonly kind: "push-progress";
  /** Of the task. */
  readonly id: string;
  readonly place: number;
  readonly claim: number;
  /** Number of the newest event that was told. Once it moves, earlier failures are forgiven. */
  readonly cursor: number;
  readonly next:
    | { readonly kind: "hold"; readonly until: number }
    /** Whatever is left to tell is due at once. */
    | { readonly kind: "release" }
    | { readonly kind: "retry"; readonly at: number; readonly error: string }
    /** Given up. Nothing more is told until somebody asks for it. */
    | { readonly kind: "dead"; readonly error: string };
}

/** One config that has something left to tell, for people. Nothing of it is secret but perhaps its address. */
export interface PushDelivery {
  readonly place: number;
  readonly taskId: string;
  readonly configId: string;
  readonly url: string;
  readonly dialect: string;
  readonly scope: Scope;
  readonly cursor: number;
  /** Number of the newest event of the task. */
  readonly number: number;
  readonly attempts: number;
  /** When it is tried (again), or when the claim of whoever is trying ends. */
  readonly dueAt?: number;
  readonly lastError?: string;
  readonly deadAt?: number;
}

export interface PushDeliveryQuery {
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
  readonly configId?: string;
  /** Tell again from this event on; absent: from the first that was not told. Needs a task. */
  readonly from?: number;
}

/** A config that was made due again. */
export interface Redelivered {
  readonly taskId: string;
  readonly configId: string;
  readonly dialect: string;
  /** Whose task it is. */
  readonly scope: Scope;
}
