/** Who calls. Tasks belong to an owner; nobody else can tell that they exist. */
export interface Caller {
  readonly owner: string;
  readonly authenticated: boolean;
  /** What the caller was granted besides being let in; skills may ask for some. */
  readonly scopes?: readonly string[];
  /** When what the caller has shown is no longer good, in milliseconds since the epoch; streams end then. */
  readonly expires?: number;
  /** Where the call comes from, as far as the carrier can tell. */
  readonly address?: string;
}

export const ANONYMOUS: Caller = { owner: "anonymous", authenticated: false };
