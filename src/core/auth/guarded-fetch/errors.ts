/** What can go wrong with a request whose target came from outside. */

/** One sentence each: what a name resolves to or who answers at an address is not revealed to the caller that named it. */
const MESSAGES = {
  "bad-url": "The target is not an absolute URL.",
  "forbidden-scheme": "The target must be an http or https URL.",
  "credentials-in-url": "The target must not have a user name or password in it.",
  "forbidden-target": "The target is in a network that must not be reached.",
  unreachable: "The target could not be reached.",
  "bad-redirect": "The target redirected to where this request must not go.",
  "too-many-redirects": "The target redirected too often.",
  "too-large": "The answer is larger than allowed.",
  timeout: "The target did not answer in time.",
  "bad-response": "The answer could not be understood.",
} as const;

export type GuardedFetchErrorCode = keyof typeof MESSAGES;

/** A local error: it never crosses the wire, and neither does its cause, which may name what is inside the network. */
export class GuardedFetchError extends Error {
  override readonly name = "GuardedFetchError";
  readonly code: GuardedFetchErrorCode;

  constructor(code: GuardedFetchErrorCode, options?: ErrorOptions) {
    super(MESSAGES[code], options);
    this.code = code;
  }
}
