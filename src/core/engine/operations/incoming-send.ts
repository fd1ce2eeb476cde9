import type { DeliveryRegistration, IdempotencyClaim } from "../../store/contract.ts";
import type { SendRequest } from "../incoming-message.ts";
import type { EngineContext } from "../options.ts";
import { computeFingerprint } from "../request-identity.ts";
import type { ServedAgent } from "../runs/runner.ts";

/** A send with all that decides what becomes of it. */
export interface IncomingSend extends SendRequest {
  readonly served: ServedAgent;
  /** The caller wants the events as they come. */
  readonly follow: boolean;
  /** Where what follows is delivered; set once it was read and checked. */
  deliveries: readonly DeliveryRegistration[] | undefined;
}

/** Under which a repeat of the send will be recognised, if its caller gave it a key. */
export function claimOf({ times }: EngineContext, { input, call }: IncomingSend): IdempotencyClaim | undefined {
  if (call.idempotencyKey === undefined) return undefined;
  return { key: call.idempotencyKey, fingerprint: computeFingerprint(input), ttlMs: times.idempotencyMs };
}
