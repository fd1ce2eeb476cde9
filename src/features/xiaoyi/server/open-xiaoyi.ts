/** Creates the Xiaoyi dialects from a server's options. */

import type { Carrier, CarrierHost, Records } from "../../../core/dialects/carrier.ts";
import type { Dialect, DialectTools } from "../../../core/dialects/contract.ts";
import type { BackoffPolicy } from "../../../core/model/backoff.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import type { JsonObject } from "../../../core/model/json.ts";
import type { Log } from "../../../core/model/ports.ts";
import { defaultOwner } from "../../../core/server/access/default-owner.ts";
import type { ServeOptions } from "../../../core/server/options.ts";
import { xiaoyiHttp } from "../codec/call/call-http.ts";
import { HTTP_DIALECT } from "../codec/card.ts";
import { DEFAULT_LANGUAGE, type Language } from "../codec/phone-texts.ts";
import type { RenderMode } from "../codec/render/renderer.ts";
import { createHttpServing } from "../runtime/http/bind-http.ts";
import type { Access, Entry } from "../runtime/http/options.ts";
import { xiaoyiLink } from "../runtime/link/call/call-link.ts";
import { createFileUploads, type UploadAccount } from "../runtime/upload.ts";
import { type AccountServer, createAccountExchange, createBindings } from "./accounts.ts";
import { dialInsOf } from "./dial-in-agent.ts";
import type { DialledEntry } from "./link-servers.ts";
import { migrateFiles } from "./migrate-files.ts";
import {
  openPhoneServices,
  type PhoneServices,
  pathsBesideStore,
  type XiaoyiFilesOptions,
  type XiaoyiPushOptions,
} from "./phone-services.ts";
import { createRecordMap, SPACES } from "./record-map.ts";
import { createPlatformUpload } from "./trusted-exchanger.ts";

export interface XiaoyiOptions {
  /** Agents that the platform calls at `/agents/NAME/agent/message`. */
  readonly http?: readonly XiaoyiHttpEntryOptions[];
  /** Agents that dial the platform. */
  readonly links?: readonly XiaoyiLinkOptions[];
  readonly files?: XiaoyiFilesOptions;
}

interface XiaoyiEntryOptions {
  readonly agent: string;
  readonly owner?: string;
  /** `phone` (the default) or `spec`. */
  readonly render?: RenderMode;
  /** Language of the server's own texts: `zh` (the default) or `en`. */
  readonly language?: Language;
  /** Notifies users who left before the answer arrived. */
  readonly push?: XiaoyiPushOptions;
}

export interface XiaoyiLinkOptions extends XiaoyiEntryOptions, DialledEntry {
  /** Interval between heartbeats. Default: 20 s. */
  readonly heartbeatMs?: number;
  /** Delays before a closed link is reopened. Defaults: `RECONNECT`. */
  readonly reconnect?: Partial<BackoffPolicy>;
  /** With `apiKey`: lets the agent send files to the phone. */
  readonly uid?: string;
  readonly apiKey?: string;
  /** Upload URL. Default: Huawei's server. */
  readonly uploadUrl?: string;
}

/** One agent, called by the platform over HTTP. Exactly one of `ak` with `sk`, `apiKey` and `oauth`. */
interface XiaoyiHttpEntryOptions extends XiaoyiEntryOptions {
  readonly ak?: string;
  readonly sk?: string;
  readonly apiKey?: string;
  /** Header with the API key. Default: `Authorization`. */
  readonly header?: string;
  /** Query parameter that may hold the API key, too. */
  readonly query?: string;
  readonly oauth?: { readonly clientId: string; readonly clientSecret: string };
  /** The server where users log in, or a function from a login's authorization code to the account. */
  readonly account?: AccountServer | ((authCode: string) => Promise<JsonObject>);
  /** Lifetime of a session. Default: 7 days. */
  readonly sessionTtlMs?: number;
  /** Lets the agent send files to the phone. Default for `url`: Huawei's server. */
  readonly upload?: UploadAccount & { readonly url?: string };
}

interface XiaoyiHttpContext {
  readonly defaultOwner: (agent: string) => string;
  /** Throws before the server has started. */
  readonly records: () => Records;
  readonly phones: Pick<PhoneServices, "intake" | "notificationsFor">;
  readonly log: Log;
}

const SESSION_MS = 7 * 24 * 60 * 60 * 1_000;

/** Throws a TypeError for invalid options. */
function createHttpEntry(
  options: XiaoyiHttpEntryOptions,
  { defaultOwner, log, phones, records }: XiaoyiHttpContext,
): Entry {
  const { account, agent, ak, language = DEFAULT_LANGUAGE, owner = defaultOwner(agent), push, sk, upload } = options;
  const exchange = typeof account === "object" ? createAccountExchange(account, language) : account;
  const notified = { dialect: HTTP_DIALECT, agent, owner, language, push, ak, sk } as const;
  return {
    access: accessOf(options),
    owner,
    render: options.render ?? "phone",
    language,
    sessionTtlMs: options.sessionTtlMs ?? SESSION_MS,
    accounts: exchange && { exchange, bindings: createBindings(records, agent, owner) },
    // HTTP callers may be different users: none is notified of another's requests.
    notifications: phones.notificationsFor({ ...notified, devices: "session" }),
    cleared: createRecordMap(records, SPACES.httpContexts(agent, owner), log),
    intake: phones.intake,
    prepare: upload && createFileUploads(createPlatformUpload(upload, upload.url), log),
  };
}

function accessOf({ agent, ak, apiKey, header = "Authorization", oauth, query, sk }: XiaoyiHttpEntryOptions): Access {
  const given: Access[] = [];
  if (ak !== undefined && sk !== undefined) given.push({ kind: "signature", accessKey: ak, secretKey: sk });
  if (apiKey !== undefined) given.push({ kind: "api-key", apiKey, header: header.toLowerCase(), query });
  if (oauth !== undefined) given.push({ kind: "oauth", ...oauth });
  const [access] = given;
  // An empty secret would authorise every caller.
  if (access === undefined || given.length > 1 || Object.values(access).includes("")) {
    throw new TypeError(`xiaoyi.http: "${agent}" needs exactly one of ak with sk, apiKey and oauth.`);
  }
  return access;
}

export type XiaoyiServeOptions = Pick<ServeOptions, "agents" | "auth" | "authenticate" | "baseDirectory" | "store"> & {
  readonly xiaoyi?: XiaoyiOptions;
};

/** Creates both dialects and the services they share on one server. Throws a TypeError for invalid options. */
export function createXiaoyi(tools: DialectTools, options: XiaoyiServeOptions): readonly [Dialect, Dialect] {
  const { clock, ids, log } = tools;
  const { agents, xiaoyi: { files = {}, http = [], links = [] } = {} } = options;
  const location = storeLocation(options);
  const dialIns = dialInsOf(agents);
  const owners = defaultOwner(options, "xiaoyi");
  let opened: CarrierHost | undefined;
  const host = (): CarrierHost => {
    if (opened === undefined) throw new ProtocolError("UNAVAILABLE", "The server has not started.");
    return opened;
  };
  const phones = openPhoneServices(files, { ...tools, ...location, uniqueId: ids.message, host });
  const entries = new Map<string, Entry[]>();
  for (const entry of http) {
    const { agent } = entry;
    if (!Object.hasOwn(agents, agent)) throw new TypeError(`xiaoyi.http: there is no agent "${agent}".`);
    const created = createHttpEntry(entry, { records: () => host().records, defaultOwner: owners, phones, log });
    entries.set(agent, [...(entries.get(agent) ?? []), created]);
  }
  const serving = { http: createHttpServing({ clock, log, entriesFor: (agent) => entries.get(agent) ?? [] }) };

  // The code for dialling and accepting links is loaded only if it is used.
  async function carriers(host: CarrierHost): Promise<readonly Carrier[]> {
    opened = host;
    const { database } = pathsBesideStore(location);
    if (database !== undefined && http.length + links.length > 0) {
      await migrateFiles(database, { http, links, host, defaultOwner: owners, clock, log });
    }
    const all: Carrier[] = [];
    if (links.length > 0) {
      const { openXiaoyiLinks } = await import("./open-links.ts");
      all.push(...(await openXiaoyiLinks(links, { tools, host, defaultOwner: owners, phones })));
    }
    if (host.accepts && dialIns.size > 0) {
      const { createDialInCarrier } = await import("./accept-links.ts");
      const { meter } = tools;
      all.push(createDialInCarrier(dialIns, { clock, log, meter, ids: host.ids, report: host.report }));
    }
    return [...all, ...(await phones.start())];
  }

  return [
    { ...xiaoyiHttp, serving },
    { ...xiaoyiLink, serving: { carriers, close: () => phones.stop() } },
  ];
}

function storeLocation({ baseDirectory = process.cwd(), store }: Pick<XiaoyiServeOptions, "baseDirectory" | "store">) {
  return { baseDirectory, store: typeof store === "string" ? store : undefined };
}
