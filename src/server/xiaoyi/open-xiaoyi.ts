/** The options of a server about Xiaoyi, as the dialects it then serves. */

import { identifiesCallers } from "../../auth/verify/create-authenticator.ts";
import type { Carrier, CarrierHost } from "../../dialects/carrier.ts";
import type { Dialect, DialectTools } from "../../dialects/contract.ts";
import { DEFAULT_LANGUAGE, type Language } from "../../dialects/xiaoyi/phone-texts.ts";
import type { PersistentMap } from "../../dialects/xiaoyi/ports.ts";
import type { RenderMode } from "../../dialects/xiaoyi/render/renderer.ts";
import { FileUploads, type UploadAccount } from "../../dialects/xiaoyi/upload.ts";
import {
  type Access,
  type Bindings,
  createXiaoyiHttp,
  DIALECT_NAME,
  type Entry,
} from "../../dialects/xiaoyi-http/index.ts";
import { xiaoyiLink } from "../../dialects/xiaoyi-link/index.ts";
import type { BackoffPolicy } from "../../model/backoff.ts";
import { ANONYMOUS } from "../../model/caller.ts";
import type { JsonObject } from "../../model/json.ts";
import type { Clock, Log } from "../../model/ports.ts";
import type { Link } from "../../wire/link.ts";
import type { ServeOptions } from "../options.ts";
import { AccountBindings, type AccountServer, createAccountExchange } from "./accounts.ts";
import { dialInsOf } from "./dial-in-agent.ts";
import { ScopedFileMap } from "./file-backed-map.ts";
import type { DialledEntry } from "./link-servers.ts";
import {
  openPhoneServices,
  type PhoneServices,
  pathsBesideStore,
  type XiaoyiFilesOptions,
  type XiaoyiPushOptions,
} from "./phone-services.ts";
import { createPlatformUpload } from "./trusted-exchanger.ts";

export interface XiaoyiOptions {
  /** Agents that the platform calls at `/agents/NAME/agent/message`. */
  readonly http?: readonly XiaoyiHttpEntryOptions[];
  /** Agents that dial the platform. */
  readonly links?: readonly XiaoyiLinkOptions[];
  /** What becomes of the files that users send. */
  readonly files?: XiaoyiFilesOptions;
}

/** One agent that dials the platform. */
export interface XiaoyiLinkOptions extends DialledEntry {
  /** To whom its tasks belong. */
  readonly owner?: string;
  /** `phone` (the default) or `spec`. */
  readonly render?: RenderMode;
  /** Of what the server itself says to people; `zh` (the default) or `en`. */
  readonly language?: Language;
  /** Between two heartbeats; 20 s unless given. */
  readonly heartbeatMs?: number;
  /** When a link that closed is opened again; see `RECONNECT` for what is not given. */
  readonly reconnect?: Partial<BackoffPolicy>;
  /** With `apiKey`: lets the agent send files to the phone. */
  readonly uid?: string;
  readonly apiKey?: string;
  /** Where files are uploaded; Huawei's server unless given. */
  readonly uploadUrl?: string;
  /** Tells the user who left before the answer came. */
  readonly push?: XiaoyiPushOptions;
}

/** The agents that the platform may call over HTTP. */

/** One agent, called by the platform over HTTP. Exactly one of `ak` with `sk`, `apiKey` and `oauth`. */
interface XiaoyiHttpEntryOptions {
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

interface XiaoyiHttpContext {
  readonly clock: Clock;
  /** To whom tasks belong where an entry does not say. */
  readonly defaultOwner: (agent: string) => string;
  /** By agent and owner: nobody finds the logins of another entry. */
  readonly bindings: (agent: string, owner: string) => Bindings;
  /** By agent and owner too: which sessions were cleared. */
  readonly clearedOf: (agent: string, owner: string) => PersistentMap;
  readonly agents: ReadonlySet<string>;
  readonly phones: Pick<PhoneServices, "intake" | "notificationsFor" | "unansweredTasksOf">;
  readonly log: Log;
}

const SESSION_MS = 7 * 24 * 60 * 60 * 1_000;

/** Throws a TypeError for an entry that makes no sense. */
function openXiaoyiHttp(
  options: readonly XiaoyiHttpEntryOptions[],
  { agents, bindings, clearedOf, clock, defaultOwner, log, phones }: XiaoyiHttpContext,
): Dialect {
  const entries = new Map<string, Entry[]>();
  for (const option of options) {
    const { account, agent, owner = defaultOwner(agent), render = "phone", sessionTtlMs = SESSION_MS } = option;
    const { language = DEFAULT_LANGUAGE } = option;
    if (!agents.has(agent)) throw new TypeError(`xiaoyi.http: there is no agent "${agent}".`);
    const exchange = typeof account === "object" ? createAccountExchange(account, language) : account;
    const accounts = exchange && { exchange, bindings: bindings(agent, owner) };
    const { ak, push, sk, upload } = option;
    const unanswered = phones.unansweredTasksOf(DIALECT_NAME, agent, owner);
    const noticed = { dialect: DIALECT_NAME, agent, owner, language, push, ak, sk, unanswered } as const;
    const entry = {
      access: accessOf(option),
      owner,
      render,
      language,
      sessionTtlMs,
      accounts,
      // Whoever calls over HTTP may be anyone: nobody is told what another has asked.
      notifications: phones.notificationsFor({ ...noticed, devices: "session" }),
      unanswered,
      cleared: clearedOf(agent, owner),
      intake: phones.intake,
      uploads: upload && new FileUploads(createPlatformUpload(upload, upload.url), log),
    };
    entries.set(agent, [...(entries.get(agent) ?? []), entry]);
  }
  return createXiaoyiHttp({ clock, log }, { entriesFor: (agent) => entries.get(agent) ?? NO_ENTRIES });
}

const NO_ENTRIES: readonly Entry[] = [];

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

export type XiaoyiServeOptions = Pick<
  ServeOptions,
  "agents" | "auth" | "authenticate" | "baseDirectory" | "store" | "xiaoyi"
>;

/** Both ways to the platform, and what they share on one server. Throws a TypeError for what makes no sense. */
export function createXiaoyi(tools: DialectTools, options: XiaoyiServeOptions): readonly [Dialect, Dialect] {
  const { clock, ids, log } = tools;
  const { agents, xiaoyi: { files = {}, http = [], links = [] } = {} } = options;
  const since = clock.now();
  const location = storeLocation(options);
  const { keptFile } = pathsBesideStore(location);
  const dialIns = dialInsOf(agents);
  const bindings = new AccountBindings(keptFile("logins"), log);
  const cleared = new ScopedFileMap(keptFile("http-contexts"), log);
  const owners = defaultOwner(options);
  let services: CarrierHost["agents"] = new Map();
  const phones = openPhoneServices(files, {
    ...tools,
    ...location,
    uniqueId: ids.message,
    serviceOf: (name) => services.get(name),
  });
  const xiaoyiHttp = openXiaoyiHttp(http, {
    clock,
    agents: new Set(Object.keys(agents)),
    bindings: (agent, owner) => bindings.scope(agent, owner),
    clearedOf: (agent, owner) => cleared.scope(agent, owner),
    defaultOwner: owners,
    phones,
    log,
  });

  // What it takes to dial and to be dialled is loaded only where it is used.
  async function carriers(host: CarrierHost): Promise<readonly Carrier<Link>[]> {
    services = host.agents;
    const opened: Carrier<Link>[] = [];
    if (links.length > 0) {
      const { openXiaoyiLinks } = await import("./open-links.ts");
      const contextsFile = keptFile("contexts");
      const context = { tools, host, defaultOwner: owners, since, phones, contextsFile };
      opened.push(...(await openXiaoyiLinks(links, context)));
    }
    if (host.accepts && dialIns.size > 0) {
      const { createDialInCarrier } = await import("./accept-links.ts");
      const { meter } = tools;
      opened.push(createDialInCarrier(dialIns, { clock, log, meter, ids: host.ids, report: host.report }));
    }
    // What is answered over a link is not notified of, so that links say first what they take up.
    await phones.start();
    return opened;
  }

  return [xiaoyiHttp, { ...xiaoyiLink, serving: { carriers, close: () => phones.stop() } }];
}

/** Where everybody is anonymous, what came from a phone can be read from elsewhere. */
function defaultOwner({
  auth = {},
  authenticate,
}: Pick<XiaoyiServeOptions, "auth" | "authenticate">): (agent: string) => string {
  const identifies = authenticate !== undefined || identifiesCallers(auth);
  return (agent) => (identifies ? `xiaoyi:${agent}` : ANONYMOUS.owner);
}

function storeLocation({ baseDirectory = process.cwd(), store }: Pick<XiaoyiServeOptions, "baseDirectory" | "store">) {
  return { baseDirectory, store: typeof store === "string" ? store : undefined };
}
