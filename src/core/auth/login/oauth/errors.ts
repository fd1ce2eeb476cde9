/** What the OAuth library reports, as a message for people. Never includes a request or an answer, which hold secrets. */

import {
  AuthorizationResponseError,
  ClientError,
  ResponseBodyError,
  WWWAuthenticateChallengeError,
} from "openid-client";
import { LoginError } from "../contract.ts";

/** Codes of the library for answers that contradict what is known of the server. */
const UNTRUSTED_CODES = new Set([
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_HTTP_REQUEST_FORBIDDEN",
  "OAUTH_REQUEST_PROTOCOL_FORBIDDEN",
]);

export function toLoginError(error: unknown, where: string): LoginError {
  if (error instanceof LoginError) return error;
  // Ours, which the library has wrapped on its way through.
  if (error instanceof ClientError && error.cause instanceof LoginError) return error.cause;
  if (error instanceof ResponseBodyError || error instanceof AuthorizationResponseError) {
    const description = error.error_description ?? error.error;
    const code =
      error.error === "server_error" || error.error === "temporarily_unavailable" ? "unavailable" : "refused";
    return new LoginError(code, `${where} refused: ${description} (${error.error})`, { cause: error });
  }
  // RFC 6749 5.2: how a server refuses a client that showed its secret in a header.
  if (error instanceof WWWAuthenticateChallengeError) {
    const descriptions = error.cause.flatMap(
      ({ parameters: { error: code, error_description } }) => error_description ?? code ?? [],
    );
    const reason = descriptions.join(", ") || "the client is not known there, or its secret is wrong";
    return new LoginError("refused", `${where} refused: ${reason} (invalid_client)`, { cause: error });
  }
  if (isAbort(error))
    return new LoginError("aborted", "The login was cancelled before it was complete.", { cause: error });
  if (error instanceof ClientError)
    return new LoginError(codeOf(error), `${where}: ${describe(error)}.`, { cause: error });
  return new LoginError("unavailable", `${where} could not be reached: ${messageOf(error)}.`, { cause: error });
}

/** The refresh token, or the client, is of no use any more; asking again cannot help. */
export function isFinalRefusal(error: unknown): boolean {
  if (error instanceof WWWAuthenticateChallengeError) return true;
  return (
    error instanceof ResponseBodyError &&
    ["invalid_grant", "invalid_client", "unauthorized_client", "invalid_scope"].includes(error.error)
  );
}

/** A token that carries its own proof cannot be taken back; it ends by itself. */
export function isIrrevocable(error: unknown): boolean {
  return error instanceof ResponseBodyError && error.error === "unsupported_token_type";
}

function codeOf(error: ClientError): LoginError["code"] {
  if (error.code !== undefined && UNTRUSTED_CODES.has(error.code)) return "untrusted";
  // Of the redirect back to us: its state or issuer is not the one that was sent out.
  return error.code === "OAUTH_INVALID_RESPONSE" ? "untrusted" : "unavailable";
}

function describe(error: ClientError): string {
  const { cause } = error;
  const detail = cause instanceof Error && cause.message !== error.message ? ` (${messageOf(cause)})` : "";
  return `${error.message}${detail}`;
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return "no reason was given";
  const cause = error.cause instanceof Error && error.cause.message !== "" ? `: ${error.cause.message}` : "";
  return `${error.message}${cause}`;
}

function isAbort(error: unknown): boolean {
  for (let cause: unknown = error; cause instanceof Error; cause = cause.cause) {
    if (cause.name === "AbortError" || ("code" in cause && cause.code === "OAUTH_ABORT")) return true;
  }
  return false;
}
