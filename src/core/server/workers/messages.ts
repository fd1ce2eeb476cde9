/** What the process that holds the ports and those that serve send each other. */

export type ToWorker =
  | { readonly kind: "stop"; readonly reason: string }
  /** Asks for the metrics of one worker. */
  | { readonly kind: "collect"; readonly id: number }
  /** Answers `gather`. */
  | { readonly kind: "gathered"; readonly id: number; readonly metrics: string };

export type FromWorker =
  /** With the text that is printed once for all workers. */
  | { readonly kind: "listening"; readonly banner: string }
  /** Asks for the metrics of all workers. */
  | { readonly kind: "gather"; readonly id: number }
  /** Answers `collect`. */
  | { readonly kind: "collected"; readonly id: number; readonly metrics: string };

/** Set for the processes that serve; a user's own `node:cluster` must not be taken for ours. */
export const WORKER_VARIABLE = "DRAGOMAN_WORKER";
