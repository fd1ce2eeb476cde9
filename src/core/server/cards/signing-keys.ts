import { resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { loadSigningKey, type SigningKey, type SigningKeyOptions, toPublicJwk } from "../../auth/signatures/keys.ts";
import { signCard } from "../../auth/signatures/sign-card.ts";
import { toCardDocument } from "../../dialects/a2a-v1/card.ts";
import type { AgentCard } from "../../model/card.ts";
import { type FullReply, jsonReply } from "../../wire/exchange.ts";
import type { PushOptions } from "../push.ts";

const JWKS_PATH = "/.well-known/jwks.json";

type Jwk = Readonly<Record<string, unknown>> & { readonly kid: string };

const MAX_AGE_SECONDS = 300;

/**
 * Serves the public keys as one JWK set (RFC 7517 §5); no route without keys. One key may serve several purposes;
 * different keys with the same `kid` would be ambiguous to verifiers.
 */
export function createJwksRoutes(keys: readonly Jwk[]): ReadonlyMap<string, () => FullReply> {
  const named = new Map<string, Jwk>();
  for (const key of keys) {
    const known = named.get(key.kid);
    if (known !== undefined && !isDeepStrictEqual(known, key)) {
      throw new TypeError(`Two different keys are called "${key.kid}"; each needs a kid of its own.`);
    }
    named.set(key.kid, key);
  }
  if (named.size === 0) return new Map();
  const reply = jsonReply(200, JSON.stringify({ keys: [...named.values()] }), {
    "content-type": "application/jwk-set+json",
    "cache-control": `public, max-age=${MAX_AGE_SECONDS}`,
  });
  return new Map([[JWKS_PATH, () => reply]]);
}

/** Adds signatures to a card. */
export type CardSigner = (card: AgentCard) => AgentCard;

/** Signs the A2A 1.0 form of the card; merged documents carry the same signatures. */
export function createCardSigner(key: SigningKey, baseUrl: () => string): CardSigner {
  return (card) => {
    const { signatures: _, ...unsigned } = card;
    return { ...unsigned, signatures: signCard(toCardDocument(unsigned), { ...key, ...jkuOf(key, baseUrl()) }) };
  };
}

/** Names the key set of this server only if it is served over https: verifiers do not fetch it over plain http. */
function jkuOf({ jku }: SigningKey, baseUrl: string): { readonly jku?: string } {
  if (jku !== undefined) return { jku };
  return baseUrl.startsWith("https://") ? { jku: `${baseUrl}${JWKS_PATH}` } : {};
}

export type ServerKeys = Awaited<ReturnType<typeof loadServerKeys>>;

interface ServerKeyOptions {
  readonly signing?: SigningKeyOptions;
  readonly push?: boolean | PushOptions;
  readonly baseDirectory: string;
}

/**
 * Signing keys of this server, and the routes of their public parts. Called when the server starts, so that an unusable
 * key fails early.
 */
export async function loadServerKeys({ baseDirectory, push, signing }: ServerKeyOptions) {
  const load = (options: SigningKeyOptions | undefined) =>
    options && loadSigningKey({ ...options, keyFile: resolve(baseDirectory, options.keyFile) });
  const keys = { card: await load(signing), push: await load(typeof push === "object" ? push.jwt : undefined) };
  const published = Object.values(keys).flatMap((key) => (key === undefined ? [] : [toPublicJwk(key)]));
  return { ...keys, routes: createJwksRoutes(published) };
}
