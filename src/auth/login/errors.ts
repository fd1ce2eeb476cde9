/** Why a login did not succeed. Local: what crosses the wire is a `ProtocolError`. */

export const LOGIN_ERROR_CODES = [
  /** The authorization server, or the person, said no. */
  "refused",
  /** The authorization server cannot be reached or does not behave. */
  "unavailable",
  /** What the server says contradicts what is known of it. */
  "untrusted",
  /** Nothing the agent offers can be used from here. */
  "unsupported",
  /** The card has no scheme of the name that was given. */
  "unknown-scheme",
  /** Something is needed that was not given. */
  "incomplete",
  /** Given up before the end. */
  "aborted",
] as const;

export type LoginErrorCode = (typeof LOGIN_ERROR_CODES)[number];

export class LoginError extends Error {
  override readonly name = "LoginError";
  readonly code: LoginErrorCode;

  constructor(code: LoginErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
