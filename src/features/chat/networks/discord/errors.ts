/** What Discord's refusals mean. */

import { ChannelError } from "../../../../core/wire/channel.ts";
import { DialError } from "../../../../core/wire/dial-error.ts";
import { describeError } from "../redact.ts";

export function toChannelError(error: unknown, library: typeof import("discord.js"), token: string): Error {
  const reason = describeError(error, [token]);
  if (error instanceof library.RateLimitError) {
    const { retryAfter, timeToReset } = error;
    const options = { retryAfterMs: Math.max(retryAfter, timeToReset, 0) };
    return new ChannelError("rate-limited", "Discord limits the rate of posts.", options);
  }
  if (error instanceof library.DiscordAPIError) {
    const unknownMessage = error.code === 10_008;
    const hidden = !unknownMessage && (error.status === 403 || error.status === 404);
    return new ChannelError(hidden ? "no-access" : "refused", `Discord refuses the post: ${reason}`);
  }
  return new Error(`The request to Discord failed: ${reason}`);
}

/** Close codes of the gateway that a change of the settings can prevent. */
export function explainClose(code: number): string | undefined {
  if (code === 4_004) return "Discord does not accept the `token`: copy it again from Developer Portal → Bot → Token.";
  if (code === 4_014) {
    return "Discord refuses the connection because the bot may not read messages: enable Developer Portal → Bot → Privileged Gateway Intents → Message Content Intent.";
  }
  return undefined;
}

export function toDialError(error: unknown, code: number, token: string): DialError {
  if (error instanceof DialError) return error;
  const invalid = error instanceof Error && "code" in error && error.code === "TokenInvalid";
  const explained = explainClose(invalid ? 4_004 : code);
  if (explained !== undefined) return new DialError("refused", explained);
  return new DialError("unreachable", `Discord cannot be reached: ${describeError(error, [token])}`);
}
