import { type AuthOptions, secretsOf } from "../auth/create.ts";

interface Configured {
  readonly auth?: AuthOptions;
  readonly push?: boolean | { readonly hmac?: { readonly secret: string } | undefined };
}

/** What is known to be secret and therefore hidden wherever it would be written. */
export function knownSecrets({ auth = {}, push }: Configured): readonly string[] {
  const hmac = typeof push === "object" ? push.hmac : undefined;
  return [...secretsOf(auth), ...(hmac === undefined ? [] : [hmac.secret])];
}
