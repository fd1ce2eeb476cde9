/** What links and channels have in common: all that is needed to keep one open. */
export interface Connection {
  /** The first close counts, later ones are ignored. */
  close(code?: number, reason?: string): void;
  /** Never rejects. */
  readonly closed: Promise<Closure>;
}

/** Codes are those of WebSocket (RFC 6455 §7.4). */
export interface Closure {
  readonly code: number;
  readonly reason: string;
}

export const NORMAL_CLOSURE = 1000;
/** The server shuts down. */
export const GOING_AWAY = 1001;
/** The connection broke without a close frame. */
export const ABNORMAL_CLOSURE = 1006;
export const INTERNAL_ERROR_CLOSURE = 1011;
