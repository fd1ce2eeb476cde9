/** What a probe found out about an agent. */

import { GuardedFetchError } from "../../../auth/guarded-fetch/errors.ts";
import { ConnectionError } from "../../../client/errors.ts";
import { ProtocolError } from "../../../model/errors.ts";

/** `not-checked`: it could not be tested, or only in a way that the user has to ask for. */
export type ClaimStatus = "ok" | "wrong" | "not-checked";

/** Something that a card or a configuration says of an agent, and whether it is so. */
export interface Claim {
  readonly claim: string;
  readonly status: ClaimStatus;
  readonly detail: string;
}

export interface AgentReport {
  readonly agent: string;
  /** What the agent of a configuration depends on elsewhere; absent: the agent itself. */
  readonly part?: "upstream" | "model";
  /** Where it was found: `configuration`, or the URL of a registry. */
  readonly source: string;
  /** Of the card, or of a model. */
  readonly url?: string;
  readonly status: ClaimStatus;
  readonly claims: readonly Claim[];
}

export type Finding = Omit<Claim, "claim">;

export const isSo = (detail: string): Finding => ({ status: "ok", detail });
export const isWrong = (detail: string): Finding => ({ status: "wrong", detail });
export const notChecked = (detail: string): Finding => ({ status: "not-checked", detail });

/** Wrong if anything is; otherwise ok if anything is. */
export function statusOf(claims: readonly Finding[]): ClaimStatus {
  if (claims.some(({ status }) => status === "wrong")) return "wrong";
  return claims.some(({ status }) => status === "ok") ? "ok" : "not-checked";
}

/** One finding for several interfaces, with their names where they differ. */
export function combine(findings: readonly (readonly [label: string, finding: Finding])[]): Finding {
  const status = statusOf(findings.map(([, finding]) => finding));
  const labels = new Map<string, string[]>();
  for (const [label, finding] of findings) {
    const shown = finding.status === status ? finding.detail : undefined;
    if (shown !== undefined) labels.set(shown, [...(labels.get(shown) ?? []), label]);
  }
  const [[only, ofOnly] = ["", []], ...others] = labels;
  if (others.length === 0 && ofOnly.length === findings.length) return { status, detail: only };
  return { status, detail: [...labels].map(([detail, some]) => `${some.join(", ")}: ${detail}`).join("; ") };
}

/** What this side refused to do or had no time for is not held against the agent, nor is a limit on calls. */
export function findingOf(error: unknown): Finding {
  const message = error instanceof Error ? error.message : String(error);
  if (isBlocked(error)) {
    return notChecked("a registry must not send us into private networks; --allow-private-targets allows it");
  }
  if (ProtocolError.is(error)) {
    return (error.code === "RESOURCE_EXHAUSTED" ? notChecked : isWrong)(`answered with ${error.code}: ${message}`);
  }
  if (ConnectionError.is(error) && error.code === "aborted") return notChecked("was stopped before it was done");
  if (ConnectionError.is(error) && error.code === "timeout") return isWrong("does not answer in time");
  return isWrong(message);
}

/** Refused by the guarded fetch because of where it leads. */
function isBlocked(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 8; cause = cause.cause, depth++) {
    if (cause instanceof GuardedFetchError && cause.code === "forbidden-target") return true;
  }
  return false;
}
