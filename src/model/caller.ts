/** Who calls. Tasks belong to an owner; nobody else can tell that they exist. */
export interface Caller {
  readonly owner: string;
  readonly authenticated: boolean;
}

export const ANONYMOUS: Caller = { owner: "anonymous", authenticated: false };
