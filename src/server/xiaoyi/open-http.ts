/** The agents that the platform may call over HTTP. */

import type { Dialect } from "../../dialects/contract.ts";
import type { Notes } from "../../dialects/xiaoyi/notes.ts";
import { DEFAULT_LANGUAGE, type Language } from "../../dialects/xiaoyi/phone-texts.ts";
import type { RenderMode } from "../../dialects/xiaoyi/render.ts";
import type { UploadAccount } from "../../dialects/xiaoyi/upload.ts";
import { Uploads } from "../../dialects/xiaoyi/uploads.ts";
import {
  type Access,
  type Bindings,
  createXiaoyiHttp,
  DIALECT_NAME,
  type Entry,
} from "../../dialects/xiaoyi-http/index.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Clock, Log } from "../../model/ports.ts";
import { type AccountServer, exchangeAt } from "./account-exchange.ts";
import type { PhoneServices, XiaoyiPushOptions } from "./phone-services.ts";
import { uploadAs } from "./upload-as.ts";

/** One agent, called by the platform over HTTP. Exactly one of `ak` with `sk`, `apiKey` and `oauth`. */
export interface XiaoyiHttpEntryOptions {
  readonly agent: string;
  readonly ak?: string;
  readonly sk?: string;
  readonly apiKey?: string;
  /** Header with the API key; `Authorization` unless given. */
  readonly header?: string;
  /** Parameter of the query that may hold the API key too. */
  readonly query?: string;
  readonly oauth?: { readonly clientId: string; readonly clientSecret: string };
  /** Where users who log in are known, or a way of your own from a login's code to who it is. */
  readonly account?: AccountServer | ((authCode: string) => Promise<JsonObject>);
  /** To whom its tasks belong. */
  readonly owner?: string;
  /** `phone` (the default) or `spec`. */
  readonly render?: RenderMode;
  /** Of what the server itself says to people; `zh` (the default) or `en`. */
  readonly language?: Language;
  /** How long a session is good for; 7 days unless given. */
  readonly sessionTtlMs?: number;
  /** Tells users who left before the answer came. */
  readonly push?: XiaoyiPushOptions;
  /** Lets the agent send files to the phone. `url` is Huawei's server unless given. */
  readonly upload?: UploadAccount & { readonly url?: string };
}

export interface XiaoyiHttpSurroundings {
  readonly clock: Clock;
  /** To whom tasks belong where an entry does not say. */
  readonly defaultOwner: (agent: string) => string;
  /** By agent and owner: nobody finds the logins of another entry. */
  readonly bindings: (agent: string, owner: string) => Bindings;
  /** By agent and owner too: which sessions were cleared. */
  readonly clearedOf: (agent: string, owner: string) => Notes;
  readonly agents: ReadonlySet<string>;
  readonly phones: Pick<PhoneServices, "intake" | "noticesFor" | "unansweredOf">;
  readonly log: Log;
}

const SESSION_MS = 7 * 24 * 60 * 60 * 1_000;

/** Throws a TypeError for an entry that makes no sense. */
export function openXiaoyiHttp(
  options: readonly XiaoyiHttpEntryOptions[],
  { agents, bindings, clearedOf, clock, defaultOwner, log, phones }: XiaoyiHttpSurroundings,
): Dialect {
  const entries = new Map<string, Entry[]>();
  for (const option of options) {
    const { account, agent, owner = defaultOwner(agent), render = "phone", sessionTtlMs = SESSION_MS } = option;
    const { language = DEFAULT_LANGUAGE } = option;
    if (!agents.has(agent)) throw new TypeError(`xiaoyi.http: there is no agent "${agent}".`);
    const exchange = typeof account === "object" ? exchangeAt(account, language) : account;
    const accounts = exchange && { exchange, bindings: bindings(agent, owner) };
    const { ak, push, sk, upload } = option;
    const unanswered = phones.unansweredOf(DIALECT_NAME, agent, owner);
    const noticed = { dialect: DIALECT_NAME, agent, owner, language, push, ak, sk, unanswered } as const;
    const entry = {
      access: accessOf(option),
      owner,
      render,
      language,
      sessionTtlMs,
      accounts,
      // Whoever calls over HTTP may be anyone: nobody is told what another has asked.
      notices: phones.noticesFor({ ...noticed, devices: "session" }),
      unanswered,
      cleared: clearedOf(agent, owner),
      intake: phones.intake,
      uploads: upload && new Uploads(uploadAs(upload, upload.url), log),
    };
    entries.set(agent, [...(entries.get(agent) ?? []), entry]);
  }
  return createXiaoyiHttp({ clock, log, entriesFor: (agent) => entries.get(agent) ?? NONE });
}

const NONE: readonly Entry[] = [];

function accessOf({ agent, ak, apiKey, header = "Authorization", oauth, query, sk }: XiaoyiHttpEntryOptions): Access {
  const given: Access[] = [];
  if (ak !== undefined && sk !== undefined) given.push({ kind: "signature", accessKey: ak, secretKey: sk });
  if (apiKey !== undefined) given.push({ kind: "api-key", apiKey, header: header.toLowerCase(), query });
  if (oauth !== undefined) given.push({ kind: "oauth", ...oauth });
  const [access] = given;
  // An empty secret would let everyone in.
  if (access === undefined || given.length > 1 || Object.values(access).includes("")) {
    throw new TypeError(`xiaoyi.http: "${agent}" needs exactly one of ak with sk, apiKey and oauth.`);
  }
  return access;
}
