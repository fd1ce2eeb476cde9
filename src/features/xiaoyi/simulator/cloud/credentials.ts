import type { Fields } from "../../../../core/model/json.ts";
import type { Clock } from "../../../../core/model/ports.ts";
import { sign } from "../authentication.ts";
import { DecodeError, parseObject, textOf } from "../json.ts";
import type { Report } from "../violations.ts";
import { post, readText } from "./http-client.ts";

/** Longer ids may be truncated. */
const MAX_ID_LENGTH = 64;

interface AgentSession {
  readonly id: string;
  readonly until: number;
}

/** Session ids issued by the agent in exchange for credentials; several can be in use at a time. */
export class AgentSessions {
  readonly #sessions: (AgentSession | undefined)[];
  readonly #openings = new Map<number, Promise<string>>();
  readonly #clock: Clock;
  readonly #report: Report;
  readonly #initialize: () => Promise<Fields>;
  #turn = 0;

  constructor(count: number, clock: Clock, report: Report, initialize: () => Promise<Fields>) {
    this.#sessions = Array.from({ length: count }, () => undefined);
    this.#clock = clock;
    this.#report = report;
    this.#initialize = initialize;
  }

  get ids(): readonly string[] {
    return this.#sessions.flatMap((session) => session?.id ?? []);
  }

  /** Ids are used round-robin. Callers that arrive while a session is being opened wait for it. */
  async acquire(): Promise<{ readonly slot: number; readonly id: string }> {
    const slot = this.#turn++ % this.#sessions.length;
    const session = this.#sessions[slot];
    if (session !== undefined && this.#clock.now() < session.until) return { slot, id: session.id };
    return { slot, id: await this.#open(slot) };
  }

  forget(slot: number, id: string): void {
    if (this.#sessions[slot]?.id === id) this.#sessions[slot] = undefined;
  }

  async reopen(slot: number): Promise<string> {
    return this.#sessions[slot]?.id ?? this.#open(slot);
  }

  #open(slot: number): Promise<string> {
    const opening = this.#openings.get(slot) ?? this.#begin(slot);
    this.#openings.set(slot, opening);
    return opening;
  }

  async #begin(slot: number): Promise<string> {
    try {
      const session = this.#read(await this.#initialize());
      this.#sessions[slot] = session;
      return session.id;
    } finally {
      this.#openings.delete(slot);
    }
  }

  #read({ agentSessionId, agentSessionTtl, version }: Fields): AgentSession {
    const id = textOf(agentSessionId);
    const seconds = Number(agentSessionTtl);
    if (version !== "1.0") throw new DecodeError('version of the answer to initialize is not "1.0".');
    if (id === undefined || id === "") throw new DecodeError("agentSessionId is missing.");
    if (!(seconds > 0)) throw new DecodeError("agentSessionTtl is not a number of seconds.");
    if (id.length > MAX_ID_LENGTH) this.#report("session-id-too-long", `It has ${id.length}.`);
    return { id, until: this.#clock.now() + seconds * 1000 };
  }
}

export type CloudCredentials =
  | { readonly kind: "signed"; readonly accessKey: string; readonly secretKey: string }
  | { readonly kind: "header"; readonly key: string; readonly name?: string; readonly bearer?: boolean }
  | { readonly kind: "query"; readonly key: string; readonly name?: string }
  | {
      readonly kind: "oauth";
      readonly tokenUrl: string;
      readonly clientId: string;
      readonly clientSecret: string;
      readonly scope?: string;
    }
  | { readonly kind: "none" };

/** The console silently truncates longer values. */
const MAX_CONSOLE_LENGTH = 64;

const truncateToConsole = (secret: string) => secret.slice(0, MAX_CONSOLE_LENGTH);

export interface CredentialParams {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

/** Returns a function that gives the credentials for the next request. */
export function createCredentialSource(given: CloudCredentials, clock: Clock): () => Promise<CredentialParams> {
  let token: { readonly value: string; readonly until: number } | undefined;
  return async (): Promise<CredentialParams> => {
    switch (given.kind) {
      case "none":
        return { headers: {}, query: {} };
      case "signed": {
        const ts = String(clock.now());
        const signature = sign(truncateToConsole(given.secretKey), ts);
        return { headers: { accessKey: truncateToConsole(given.accessKey), sign: signature, ts }, query: {} };
      }
      case "header": {
        const value = given.bearer === false ? truncateToConsole(given.key) : `Bearer ${truncateToConsole(given.key)}`;
        return { headers: { [given.name ?? "Authorization"]: value }, query: {} };
      }
      case "query":
        return { headers: {}, query: { [given.name ?? "apiKey"]: truncateToConsole(given.key) } };
      case "oauth":
        if (token === undefined || clock.now() >= token.until) token = await fetchToken(given, clock);
        return { headers: { Authorization: `Bearer ${token.value}` }, query: {} };
    }
  };
}

async function fetchToken(oauth: Extract<CloudCredentials, { readonly kind: "oauth" }>, clock: Clock) {
  const form = new URLSearchParams({
    grant_type: "client_credentials",
    client_id: oauth.clientId,
    client_secret: oauth.clientSecret,
    ...(oauth.scope === undefined ? {} : { scope: oauth.scope }),
  });
  const answer = await post({
    url: new URL(oauth.tokenUrl),
    headers: { "content-type": "application/x-www-form-urlencoded", accept: "application/json" },
    body: form.toString(),
  });
  const { access_token: token, expires_in: seconds } = parseObject(await readText(answer)) ?? {};
  const value = textOf(token);
  if (answer.statusCode !== 200 || value === undefined) throw new Error(`The token URL answered ${answer.statusCode}.`);
  return { value, until: clock.now() + Number(seconds ?? 0) * 1000 };
}
