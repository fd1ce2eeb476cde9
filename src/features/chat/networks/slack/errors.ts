/** What Slack's refusals mean. */

import { ChannelError } from "../../../../core/wire/channel.ts";
import { DialError } from "../../../../core/wire/dial-error.ts";
import { describeError } from "../redact.ts";

export const BOT_TOKEN_HELP =
  "Slack does not accept the `botToken`: copy the Bot User OAuth Token (xoxb-…) from OAuth & Permissions.";
export const APP_TOKEN_HELP =
  "Slack does not accept the `appToken`: copy the token (xapp-…) with the scope connections:write from Basic Information → App-Level Tokens, and enable Socket Mode.";

export function explainScope(scope: string): string {
  return `The bot lacks the scope ${scope}: add it in OAuth & Permissions → Scopes → Bot Token Scopes, and install the app again.`;
}

/** The code of an error that Slack answered with. */
function codeOf(error: unknown): string | undefined {
  return dataOf(error).error;
}

function dataOf(error: unknown): Readonly<Record<string, string | undefined>> {
  return (error instanceof Error && "data" in error ? error.data : {}) as Record<string, string | undefined>;
}

export function toReason(error: unknown, secrets: readonly string[]): string {
  const { needed } = dataOf(error);
  return needed === undefined ? describeError(error, secrets) : explainScope(needed);
}

export function toDialError(error: unknown, secrets: readonly string[], help: string): DialError {
  if (codeOf(error) === undefined) {
    return new DialError("unreachable", `Slack cannot be reached: ${toReason(error, secrets)}`);
  }
  return new DialError("refused", `${help} (${codeOf(error)})`);
}

const NO_ACCESS = [
  "channel_not_found",
  "not_in_channel",
  "is_archived",
  "restricted_action",
  "missing_scope",
  "cannot_dm_bot",
];
/** It is not known what became of the request. */
const UNCERTAIN = ["internal_error", "fatal_error", "service_unavailable", "request_timeout"];

export function toChannelError(
  error: unknown,
  library: typeof import("@slack/web-api"),
  secrets: readonly string[],
): Error {
  const code = codeOf(error);
  if (error instanceof library.WebAPIRateLimitedError) {
    const options = { retryAfterMs: error.retryAfter * 1_000 };
    return new ChannelError("rate-limited", "Slack limits the rate of posts.", options);
  }
  if (code === undefined || UNCERTAIN.includes(code)) {
    return new Error(`The request to Slack failed: ${toReason(error, secrets)}`);
  }
  const reason = `Slack refuses the post: ${toReason(error, secrets)}`;
  return new ChannelError(NO_ACCESS.includes(code) ? "no-access" : "refused", reason);
}
