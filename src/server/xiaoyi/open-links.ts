/** Agents that dial the platform. */

import type { ServeContext } from "../../dialects/contract.ts";
import { DEFAULT_LANGUAGE } from "../../dialects/xiaoyi/phone-texts.ts";
import type { PersistentMap } from "../../dialects/xiaoyi/ports.ts";
import { createLinkServing, DIALECT_NAME } from "../../dialects/xiaoyi-link/index.ts";
import type { Caller } from "../../model/caller.ts";
import type { Clock, IdGenerator, Log } from "../../model/ports.ts";
import { dialWebSocket } from "../../wire/websocket-dial.ts";
import type { Gate } from "../access/gate.ts";
import { DialLoop, type LinkState, RECONNECT } from "./dial-loop.ts";
import { ScopedFileMap } from "./file-backed-map.ts";
import { checkDuplicateLinks, dialHeaders, linkServersOf } from "./link-servers.ts";
import type { XiaoyiLinkOptions } from "./open-xiaoyi.ts";
import type { PhoneServices } from "./phone-services.ts";
import { createPlatformUpload } from "./trusted-exchanger.ts";

export interface XiaoyiLinkContext {
  readonly clock: Clock;
  readonly ids: Pick<IdGenerator, "artifact">;
  readonly random: () => number;
  readonly log: Log;
  /** To whom tasks belong where an entry does not say. */
  readonly defaultOwner: (agent: string) => string;
  /** Counts one message of a caller; throws a ProtocolError if its owner sends too many. */
  readonly enter: Gate["enter"];
  /** What somebody may do with an agent; undefined where there is no such agent. */
  readonly contextOf: (agent: string, caller: Caller, dialect: string) => ServeContext | undefined;
  /** When this process began to take up the tasks of earlier ones. */
  readonly since: number;
  readonly phones: Pick<PhoneServices, "intake" | "notificationsFor" | "unansweredTasksOf">;
  /** Where it is kept which conversations were cleared; undefined: in memory. */
  readonly contextsFile: string | undefined;
}

export interface XiaoyiLinks {
  /** One for each server of each entry. */
  readonly states: readonly LinkState[];
  /** Gives answers that are complete a moment to leave, then closes all links. */
  stop(): Promise<void>;
}

const CONNECT_MS = 30_000;
const PING = { everyMs: 30_000, deadlineMs: 10_000 };
const DRAIN_MS = 1_000;

/** Throws a TypeError for an entry that makes no sense. Does not wait for the links: they open when they can. */
export async function openXiaoyiLinks(
  entries: readonly XiaoyiLinkOptions[],
  deps: XiaoyiLinkContext,
): Promise<XiaoyiLinks> {
  checkDuplicateLinks(entries);
  const cleared = new ScopedFileMap(deps.contextsFile, deps.log);
  const opened = await Promise.all(entries.map((entry) => openLink(entry, cleared.scope(entry.agentId), deps)));
  return {
    get states() {
      return opened.flatMap(({ loops }) => loops.map(({ state }) => state));
    },
    async stop() {
      await Promise.all(opened.map(({ stop }) => stop()));
    },
  };
}

async function openLink(entry: XiaoyiLinkOptions, cleared: PersistentMap, deps: XiaoyiLinkContext) {
  const { agent: name, agentId, apiKey, heartbeatMs, owner = deps.defaultOwner(name), render, uid } = entry;
  const { language = DEFAULT_LANGUAGE } = entry;
  const { clock, ids, log, phones, random } = deps;
  const caller = { owner, authenticated: true };
  const context = deps.contextOf(name, caller, DIALECT_NAME);
  if (context === undefined) throw new TypeError(`xiaoyi.links: there is no agent "${name}".`);
  const serving = createLinkServing({
    agentId,
    admit: () => deps.enter(caller, name, DIALECT_NAME),
    artifactId: ids.artifact,
    clock,
    log,
    mode: render ?? "phone",
    language,
    intake: phones.intake,
    cleared,
    unanswered: phones.unansweredTasksOf(DIALECT_NAME, agentId, owner),
    // The platform knows no users here: all who speak to the agent are its owner.
    notifications: phones.notificationsFor({ ...entry, dialect: DIALECT_NAME, owner, language, devices: "all" }),
    ...(heartbeatMs === undefined ? undefined : { times: { heartbeatMs } }),
    ...(uid === undefined || apiKey === undefined
      ? undefined
      : { upload: createPlatformUpload({ uid, apiKey }, entry.uploadUrl) }),
  });
  const agent = serving.open(context);
  const [main, ...others] = linkServersOf(entry);
  await agent.resume(deps.since, [main.name, ...others.map((server) => server.name)]);
  const loops = [main, ...others].map(({ name: server, tls, url }) => {
    const about = { agent: name, agentId, server: new URL(url).host };
    if (tls.insecure === true) log.warn(about, "INSECURE: the certificate of this server of Xiaoyi is not verified.");
    return new DialLoop({
      dial: (signal) => {
        const headers = dialHeaders(entry, clock.now());
        return dialWebSocket(url, { clock, headers, connectTimeoutMs: CONNECT_MS, ping: PING, tls, signal });
      },
      serve: (link) => agent.serve(link, server),
      clock,
      random,
      log,
      about,
      policy: { ...RECONNECT, ...entry.reconnect },
    });
  });
  const stop = async (): Promise<void> => {
    await agent.drain(DRAIN_MS);
    agent.close();
    await Promise.all(loops.map((loop) => loop.stop()));
  };
  return { loops, stop };
}
