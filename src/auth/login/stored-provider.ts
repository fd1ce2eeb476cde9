/** Shows an agent what a login left behind, and renews it in time. */
import { ProtocolError } from "../../model/errors.ts";
import type {
  AgentCredentials,
  CredentialProvider,
  CredentialVault,
  OAuthCredential,
  Refusal,
  StoredCredential,
} from "./contract.ts";
import { present, secretsOf } from "./stored-credential.ts";

export interface StoredProviderOptions {
  readonly vault: CredentialVault;
  /** What the vault has for the agent now. */
  readonly known: AgentCredentials;
  /** The schemes to satisfy, by name. */
  readonly schemes: readonly string[];
  readonly now: () => number;
  /** Servers on this machine may be asked without TLS. */
  readonly allowLoopback: boolean;
  readonly fetch?: typeof globalThis.fetch;
  /** Told of every secret before it is used, so that it can be kept out of what is shown. */
  readonly onSecret?: (secret: string) => void;
  readonly onUnauthorized?: (url: string, challenge: string) => void;
}

/** A token is not used in its last moments: it would expire on the way. */
const RENEW_BEFORE_MS = 30_000;

export function createStoredProvider(options: StoredProviderOptions): CredentialProvider {
  const { allowLoopback, now, onSecret, onUnauthorized, schemes, vault } = options;
  const { agent } = options.known;
  let known = options.known;
  /** One renewal at a time for all requests that want it. */
  const renewing = new Map<string, Promise<void>>();

  function current(): readonly StoredCredential[] {
    const credentials = schemes.flatMap((name) => known.schemes[name] ?? []);
    if (onSecret !== undefined) for (const secret of credentials.flatMap(secretsOf)) onSecret(secret);
    return credentials;
  }

  async function renewAll(isDue: (credential: OAuthCredential) => boolean, refused: boolean): Promise<void> {
    for (const name of schemes) {
      const credential = known.schemes[name];
      if (credential?.kind !== "oauth" || !isDue(credential)) continue;
      let running = renewing.get(name);
      if (running === undefined) {
        running = renewOne(name, credential, refused).finally(() => renewing.delete(name));
        renewing.set(name, running);
      }
      await running;
    }
  }

  async function renewOne(name: string, used: OAuthCredential, refused: boolean): Promise<void> {
    const { isRenewable, renew } = await import("./oauth/tokens.ts");
    const { isFinalRefusal } = await import("./oauth/failure.ts");
    const server = { fetch: options.fetch ?? globalThis.fetch, allowLoopback };
    const usable = !refused && (used.expiresAt ?? Number.POSITIVE_INFINITY) > now();
    let failure: unknown;
    known = await vault.update(agent, async (kept) => {
      const newest = kept.schemes[name];
      // Another process was quicker: its tokens are the ones that count now.
      if (newest === undefined || newest.kind !== "oauth" || newest.accessToken !== used.accessToken) return kept;
      if (!isRenewable(newest)) return kept;
      try {
        return { ...kept, schemes: { ...kept.schemes, [name]: await renew(newest, server, now) } };
      } catch (error) {
        failure = error;
        if (!isFinalRefusal(error)) return kept;
        const { refreshToken: _, ...spent } = newest;
        return { ...kept, schemes: { ...kept.schemes, [name]: spent } };
      }
    });
    const kept = known.schemes[name];
    if (kept === undefined) throw mustLogIn(agent, "has been given up");
    if (usable || (kept.kind === "oauth" && kept.accessToken !== used.accessToken)) return;
    if (failure !== undefined && !isFinalRefusal(failure)) {
      throw new ProtocolError("UNAVAILABLE", `The login at ${used.issuer} could not be renewed; try again later.`, {
        cause: failure,
      });
    }
    // Refused without a way to get anything newer: the agent's own words say more than ours.
    if (refused && failure === undefined) return;
    throw mustLogIn(agent, "has expired and cannot be renewed");
  }

  function isExpiring({ expiresAt }: OAuthCredential): boolean {
    return expiresAt !== undefined && expiresAt - RENEW_BEFORE_MS <= now();
  }

  function wasRefused({ headers }: Refusal): boolean {
    const presented = present(current()).headers;
    return headers === undefined || Object.entries(presented).every(([name, value]) => headers[name] === value);
  }

  return {
    async headersFor(_url, refusal) {
      if (refusal === undefined) await renewAll(isExpiring, false);
      else if (wasRefused(refusal)) await renewAll(() => true, true);
      return present(current()).headers;
    },
    async queryFor() {
      return present(current()).query;
    },
    ...(onUnauthorized === undefined ? {} : { onUnauthorized }),
  };
}

function mustLogIn(agent: string, what: string): ProtocolError {
  return new ProtocolError("UNAUTHENTICATED", `The login for ${agent} ${what}. Log in again.`);
}
