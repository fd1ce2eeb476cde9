/** `refused`: the other side answered, and does not accept the connection. */
type DialFailure = "refused" | "certificate" | "timeout" | "unreachable" | "stopped";

/** Why no connection came about. Apart from what dials: that is loaded only if it is used. */
export class DialError extends Error {
  override readonly name = "DialError";
  readonly failure: DialFailure;
  /** Of HTTP, where it was refused; other networks use the same numbers: 409 for a name that is in use. */
  readonly status: number | undefined;

  constructor(failure: DialFailure, message: string, status?: number) {
    super(message);
    this.failure = failure;
    this.status = status;
  }
}
