import { type PushKeys, pushKeysAt } from "../../auth/push-token.ts";
import { CommandError, usage } from "../errors.ts";
import { type Output, printJson } from "../output.ts";
import { type InboxArrival, type InboxChecks, openInbox } from "../push-inbox.ts";
import { field } from "../text-form.ts";
import { readPort } from "./serve.ts";

export interface PushInboxFlags {
  readonly port: string;
  readonly host: string;
  readonly token?: string;
  readonly jwks?: string;
  readonly issuer?: string;
  readonly publicUrl?: string;
  readonly fail?: string;
  readonly count?: string;
  readonly output?: "text" | "json";
}

/** Secrets do not belong on a command line, where other users of the machine can read them. */
export const SECRET_VARIABLE = "DRAGOMAN_PUSH_SECRET";

export async function pushInbox(output: Output, flags: PushInboxFlags): Promise<void> {
  const count = flags.count === undefined ? Number.POSITIVE_INFINITY : readNumber("--count", flags.count, 1, 1e9);
  const fail = flags.fail === undefined ? 0 : readNumber("--fail", flags.fail, 0, 100) / 100;
  const port = readPort("--port", flags.port, "");
  const origin = flags.publicUrl === undefined ? undefined : readOrigin(flags.publicUrl);
  let unverified = 0;
  let finish = (): void => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const inbox = await openInbox({
    ...checksOf(flags),
    host: flags.host,
    port,
    ...(origin === undefined ? undefined : { origin }),
    fail,
    random: Math.random,
    now: Date.now,
    onArrival: (arrival) => {
      if (flags.output === "json") printJson(output, arrival, "line");
      else output.data(render(arrival));
      if (!arrival.verified) unverified++;
      if (arrival.arrival >= count) finish();
    },
  });
  output.talk(`Push notifications are awaited at ${inbox.url}; Ctrl-C ends.`);
  process.once("SIGINT", finish).once("SIGTERM", finish);
  await finished;
  process.removeListener("SIGINT", finish).removeListener("SIGTERM", finish);
  await inbox.close();
  if (unverified > 0) {
    throw new CommandError("DRAGOMAN_ERR_UNVERIFIED", `${unverified} notifications could not be verified.`);
  }
}

function checksOf({ token, jwks, issuer }: PushInboxFlags): InboxChecks {
  const secret = process.env[SECRET_VARIABLE];
  return {
    ...(token === undefined ? undefined : { token }),
    ...(secret === undefined || secret === "" ? undefined : { secret }),
    ...(jwks === undefined ? undefined : { keys: keysAt(jwks) }),
    ...(issuer === undefined ? undefined : { issuer }),
  };
}

function keysAt(url: string): PushKeys {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw usage(`--jwks must be an http or https URL, not "${url}".`);
  return pushKeysAt(new URL(url));
}

function readNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= least && value <= most) return value;
  throw usage(`${flag} must be a number from ${least} to ${most}, not "${text}".`);
}

function readOrigin(url: string): string {
  if (!URL.canParse(url)) throw usage(`--public-url must be a URL, not "${url}".`);
  return new URL(url).origin;
}

function render({ arrival, event, task, what, checks, answer, path }: InboxArrival): string {
  const verdicts = Object.entries(checks).map(([name, verdict]) => field(NAMES[name] ?? name, verdict));
  return [
    field("Notification", arrival),
    field("Path", path.split("?", 1)[0] ?? "/"),
    field("Task", task ?? "unknown"),
    field("Event", event === undefined ? what : `${event} ${what}`),
    ...verdicts,
    field("Answer", answer),
    "\n",
  ].join("");
}

const NAMES: Readonly<Record<string, string>> = { token: "Token", signature: "Signature", jwt: "JWT" };
