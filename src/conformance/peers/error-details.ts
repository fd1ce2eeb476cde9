import { fieldsOf, isObject, show, textOf } from "../json.ts";
import type { ErrorFault } from "./peer.ts";

export const ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo";
export const DOMAIN = "a2a-protocol.org";

export interface ErrorDetails {
  readonly reason: string | undefined;
  readonly faults: readonly ErrorFault[];
}

/** The details of an error as JSON: each names its type, and one of them may say which error of A2A it is. */
export function readDetails(details: readonly unknown[]): ErrorDetails {
  const untyped = details.filter((detail) => !isObject(detail) || typeof detail["@type"] !== "string");
  return {
    reason: textOf(errorInfoOf(details)?.reason),
    faults: untyped.map((detail) => ({ rule: "detail-type", text: `a detail names no @type: ${show(detail)}` })),
  };
}

/** The ErrorInfo of the protocol's domain. */
export function errorInfoOf(details: readonly unknown[]): Readonly<Record<string, unknown>> | undefined {
  return details.map(fieldsOf).find((detail) => detail["@type"] === ERROR_INFO && detail.domain === DOMAIN);
}
