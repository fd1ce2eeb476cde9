/** Which servers of the platform an agent dials, and how it proves who it is and judges who they are. */

import { isIP } from "node:net";
import { signedHeaders } from "../../dialects/xiaoyi/signature.ts";
import type { TlsVerifyOptions } from "../../wire/tls.ts";
import { isLocalUrl } from "./trusted-exchanger.ts";

export const XIAOYI_LINK_URL = "wss://hag.cloud.huawei.com/openclaw/v1/ws/link";

/** What of an entry is about dialling. */
export interface DialledEntry {
  readonly agent: string;
  /** The platform's id of the agent. */
  readonly agentId: string;
  readonly ak: string;
  readonly sk: string;
  /** Huawei's server unless given; `ws:` only on this machine. */
  readonly url?: string;
  /** A second server; messages are answered over the one they came from. None unless given. */
  readonly backup?: XiaoyiBackupOptions;
}

/** Its certificate must be for the name of the main server, unless something else is said. */
interface XiaoyiBackupOptions {
  readonly url: string;
  /** Another name that the certificate must be for. */
  readonly servername?: string;
  /** SHA-256 of the one certificate that is accepted, in hexadecimal. */
  readonly fingerprint?: string;
  /** Accept any certificate: whoever stands in between can read and change everything. */
  readonly insecure?: boolean;
}

interface LinkServer {
  readonly name: "main" | "backup";
  readonly url: string;
  readonly tls: TlsVerifyOptions;
}

/** Throws a TypeError for what makes no sense. */
export function linkServersOf({
  agent,
  backup,
  url = XIAOYI_LINK_URL,
}: DialledEntry): readonly [LinkServer, ...LinkServer[]] {
  const { host, hostname } = parseLinkUrl(agent, url);
  const main = { name: "main", url, tls: {} } as const;
  if (backup === undefined) return [main];
  const { url: backupUrl, ...judgement } = backup;
  if (parseLinkUrl(agent, backupUrl).host === host) {
    throw new TypeError(`xiaoyi.links: the backup of "${agent}" is the same server.`);
  }
  const judged = judgement.insecure === true || (judgement.servername ?? judgement.fingerprint) !== undefined;
  const tls = judged || isIP(hostname) !== 0 ? judgement : { servername: hostname };
  return [main, { name: "backup", url: backupUrl, tls }];
}

/** Without encryption only where nobody stands in between. */
export function isLinkUrl(url: string): boolean {
  if (!URL.canParse(url)) return false;
  const { protocol } = new URL(url);
  return protocol === "wss:" || (protocol === "ws:" && isLocalUrl(url));
}

function parseLinkUrl(agent: string, url: string): URL {
  if (isLinkUrl(url)) return new URL(url);
  throw new TypeError(`xiaoyi.links: the address of "${agent}" must be wss, or ws on this machine.`);
}

/** The platform ends a link when another of the same agent comes, so that two would end each other for ever. */
export function checkDuplicateLinks(entries: readonly DialledEntry[]): void {
  const seen = new Set<string>();
  for (const entry of entries) {
    for (const { url } of linkServersOf(entry)) {
      const key = `${new URL(url).host} ${entry.agentId}`;
      if (seen.has(key)) throw new TypeError(`xiaoyi.links: "${entry.agentId}" has two links to one server.`);
      seen.add(key);
    }
  }
}

/** The time is signed, so they are made anew for every connection. */
export function dialHeaders({ agentId, ak, sk }: DialledEntry, now: number): Record<string, string> {
  return { ...signedHeaders({ accessKey: ak, secretKey: sk }, now), "x-agent-id": agentId };
}
