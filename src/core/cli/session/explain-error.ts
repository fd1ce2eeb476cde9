import { ConnectionError, changeError } from "../../client/errors.ts";
import { formatDuration } from "../../model/duration.ts";
import { ProtocolError } from "../../model/errors.ts";
import { CommandError, CommandExit } from "../errors.ts";
import { quoteForShell } from "../render/text.ts";
import { commandLine, type Settings } from "../settings/read.ts";
import { undeclaredExtensions } from "./connect-options.ts";
import { asksForCertificate, credentialHint, hasCredentials } from "./credentials.ts";
import type { Session } from "./session.ts";

/** Adds the session's context to an error: our own timeout, a missing credential, a task that is still running. */
export function explainError(error: unknown, session: Session): unknown {
  const { settings, stop } = session;
  if (error instanceof CommandExit) return error;
  if (error instanceof CommandError && error.code === "A2ACLI_ERR_USAGE") return error;
  const cause = { cause: error };
  if (stop.reason === "timeout") {
    return new CommandError("A2ACLI_ERR_TIMEOUT", timeoutMessage(session), resumeHint(session), cause);
  }
  if (stop.reason === "interrupted") {
    return new CommandError("DRAGOMAN_ERR_INTERRUPTED", interruptedMessage(session), resumeHint(session), cause);
  }
  const refusal = findCertificateRefusal(error, settings);
  if (refusal !== undefined) return refusal;
  if (isClosedForLackOfCertificate(error, session)) {
    const hint =
      "The agent's card asks for a client certificate, and there is none: set --client-cert and --client-key.";
    return new CommandError("A2ACLI_ERR_UNREACHABLE", error.message, hint, cause);
  }
  if (ProtocolError.is(error) && error.code === "EXTENSION_SUPPORT_REQUIRED" && session.card !== undefined) {
    const missing = undeclaredExtensions(session.card, settings);
    return missing === undefined ? error : changeError(error, { message: `${error.message} It requires ${missing}.` });
  }
  if (!ProtocolError.is(error) || error.code !== "UNAUTHENTICATED") return error;
  const login = `Or log in: ${commandLine(settings, "auth login")}`;
  const hint = session.card === undefined ? null : `${credentialHint(session.card)} ${login}`;
  return session.usesLogin || hasCredentials(settings)
    ? new CommandError("A2ACLI_ERR_AUTH_FAILED", `The agent refused the credentials: ${error.message}`, hint, cause)
    : new CommandError(
        "A2ACLI_ERR_CREDENTIALS_MISSING",
        `The agent requires credentials: ${error.message}`,
        hint,
        cause,
      );
}

function timeoutMessage(session: Session): string {
  const task =
    session.followedTask === undefined ? "" : ` Task ${session.followedTask.taskId} is still running at the agent.`;
  return `Timed out after ${formatDuration(session.settings.timeoutMs ?? 0)}.${task}`;
}

function interruptedMessage(session: Session): string {
  return session.followedTask === undefined
    ? "Interrupted."
    : `Interrupted. Task ${session.followedTask.taskId} in context ${session.followedTask.contextId} is still running at the agent.`;
}

function resumeHint(session: Session): string | null {
  if (session.followedTask === undefined) return null;
  const task = quoteForShell(session.followedTask.taskId);
  const cancels = `${commandLine(session.settings, "task cancel", task)} ends it.`;
  if (!session.tasksCanBeRead) return cancels;
  return `${commandLine(session.settings, "task get --wait", task)} waits for it, ${cancels}`;
}

/** Some servers close the connection without saying that they miss a certificate. */
function isClosedForLackOfCertificate(error: unknown, { card, settings }: Session): error is ConnectionError {
  if (!ConnectionError.is(error) || error.code !== "unreachable" || settings.clientCert !== undefined) return false;
  return card !== undefined && asksForCertificate(card) && /^Connection (?:closed|reset)/.test(error.message);
}

const CERTIFICATE_ALERT =
  /alert[ _](?:certificate[ _](?:required|expired|revoked|unknown)|bad[ _]certificate|unknown[ _]ca|access[ _]denied)/i;

/** A server that requires a client certificate ends the handshake, so this is not a failure to reach it. */
function findCertificateRefusal(error: unknown, { clientCert }: Settings): CommandError | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = "code" in cause ? String(cause.code) : "";
    if (!CERTIFICATE_ALERT.test(`${code} ${cause.message}`)) continue;
    return clientCert === undefined
      ? new CommandError(
          "A2ACLI_ERR_CREDENTIALS_MISSING",
          "The agent requires a client certificate.",
          "Set --client-cert and --client-key, or A2ACLI_CLIENT_CERT and A2ACLI_CLIENT_KEY.",
          { cause: error },
        )
      : new CommandError("A2ACLI_ERR_AUTH_FAILED", "The agent refused the client certificate.", null, { cause: error });
  }
  return undefined;
}
