/** Agents that dial the platform. */

import type { Carrier, CarrierHost, ConnectionTrouble } from "../../../core/dialects/carrier.ts";
import type { DialectTools } from "../../../core/dialects/contract.ts";
import type { BackoffPolicy } from "../../../core/model/backoff.ts";
import { omitUndefined } from "../../../core/model/json.ts";
import { NORMAL_CLOSURE } from "../../../core/wire/connection.ts";
import type { Link } from "../../../core/wire/link.ts";
import { dialWebSocket } from "../../../core/wire/websocket-dial.ts";
import { LINK_DIALECT } from "../codec/card.ts";
import { DEFAULT_LANGUAGE } from "../codec/phone-texts.ts";
import { LinkAgent } from "../runtime/link/bind-link.ts";
import { createFileUploads } from "../runtime/upload.ts";
import { checkDuplicateLinks, dialHeaders, linkRoute, linkServersOf } from "./link-servers.ts";
import type { XiaoyiLinkOptions } from "./open-xiaoyi.ts";
import type { PhoneServices } from "./phone-services.ts";
import { createRecordMap, SPACES } from "./record-map.ts";
import { createPlatformUpload } from "./trusted-exchanger.ts";

export interface XiaoyiLinkContext {
  readonly tools: DialectTools;
  readonly host: CarrierHost;
  readonly defaultOwner: (agent: string) => string;
  readonly phones: Pick<PhoneServices, "intake" | "notificationsFor">;
}

const RECONNECT: BackoffPolicy = { baseMs: 2_000, capMs: 60_000, maxTries: 50, resetAfterMs: 10_000 };
const CONNECT_MS = 30_000;
const PING = { everyMs: 30_000, deadlineMs: 10_000 };
/** A link that the platform closes sooner than this was not accepted. */
const EARLY_CLOSE_MS = 10_000;

/** Creates one carrier per entry. Throws a TypeError for an invalid entry. */
export function openXiaoyiLinks(
  entries: readonly XiaoyiLinkOptions[],
  context: XiaoyiLinkContext,
): Promise<readonly Carrier<Link>[]> {
  checkDuplicateLinks(entries);
  return Promise.all(entries.map((entry) => openLink(entry, linkRoute(entry, entries), context)));
}

async function openLink(entry: XiaoyiLinkOptions, route: string, context: XiaoyiLinkContext): Promise<Carrier<Link>> {
  const { defaultOwner, host, phones, tools } = context;
  const { agent: name, agentId, apiKey, heartbeatMs, owner = defaultOwner(name), render, uid } = entry;
  const { language = DEFAULT_LANGUAGE } = entry;
  const { clock, ids, log } = tools;
  const service = host.agents.get(name);
  if (service === undefined) throw new TypeError(`xiaoyi.links: there is no agent "${name}".`);
  const caller = { owner, authenticated: true };
  const [main, ...others] = linkServersOf(entry);
  const agent = new LinkAgent({
    agentId,
    servers: [main.name, ...others.map((server) => server.name)],
    replies: {
      route,
      put: ({ record, scope }, reply) => host.replies.put(scope, record.taskId, { ...reply, dialect: LINK_DIALECT }),
    },
    context: { caller, service, ids: host.ids, limits: host.limits, report: host.report },
    admit: () => host.context(name, caller),
    artifactId: ids.artifact,
    clock,
    log,
    mode: render ?? "phone",
    language,
    intake: phones.intake,
    cleared: createRecordMap(() => host.records, SPACES.linkContexts(agentId), log),
    // The platform does not identify users here: all callers of the agent are its owner.
    notifications: phones.notificationsFor({ ...entry, dialect: LINK_DIALECT, owner, language, devices: "all" }),
    times: omitUndefined({ heartbeatMs }),
    prepare:
      uid === undefined || apiKey === undefined
        ? undefined
        : createFileUploads(createPlatformUpload({ uid, apiKey }, entry.uploadUrl), log),
  });
  await agent.load();
  return {
    name: route,
    open: [main, ...others].map(({ name: server, tls, url }) => {
      const about = { agent: name, agentId, server: new URL(url).host };
      if (tls.insecure === true) log.warn(about, "INSECURE: the certificate of this server of Xiaoyi is not verified.");
      return {
        label: "Xiaoyi",
        about,
        policy: { ...RECONNECT, ...entry.reconnect },
        dial(signal) {
          const headers = dialHeaders(entry, clock.now());
          return dialWebSocket(url, { clock, headers, connectTimeoutMs: CONNECT_MS, ping: PING, tls, signal });
        },
        converse: (link) => agent.serve(link, server),
        explain: explainTrouble,
      };
    }),
    deliver: (delivery) => agent.deliver(delivery),
    settle: (milliseconds) => agent.settle(milliseconds),
    close: () => agent.close(),
    renew: () => openLink(entry, route, context),
  };
}

export function explainTrouble(trouble: ConnectionTrouble): string | undefined {
  if (trouble.kind === "refused") return REFUSALS.get(trouble.status);
  if (trouble.code !== NORMAL_CLOSURE || trouble.lastedMs >= EARLY_CLOSE_MS) return undefined;
  return "Xiaoyi closed the link as soon as it was open. Does another process use the same agent id? Does the traffic leave through a VPN?";
}

const REFUSALS: ReadonlyMap<number, string> = new Map([
  [401, "Xiaoyi refused the credentials of the link. Are ak and sk right, and is this machine's clock?"],
  [403, "Xiaoyi refused the link: the agent is not eligible. Is agentId right, and does it belong to ak?"],
]);
