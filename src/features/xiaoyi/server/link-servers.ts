/** The platform servers that an agent dials, its authentication, and how it verifies their certificates. */

import { isIP } from "node:net";
import { canParseUrl } from "../../../core/model/url.ts";
import type { TlsVerifyOptions } from "../../../core/wire/tls.ts";
import { LINK_DIALECT } from "../codec/card.ts";
import { signedHeaders } from "../codec/signature.ts";
import { isLocalUrl } from "./trusted-exchanger.ts";

export const XIAOYI_LINK_URL = "wss://hag.cloud.huawei.com/openclaw/v1/ws/link";

export interface DialledEntry {
  readonly agent: string;
  readonly agentId: string;
  readonly ak: string;
  readonly sk: string;
  /** Default: Huawei's server. `ws:` only on this machine. */
  readonly url?: string;
  /** A second server; messages are answered on the server they came from. Default: none. */
  readonly backup?: XiaoyiBackupOptions;
}

/** By default, its certificate must be valid for the name of the main server. */
interface XiaoyiBackupOptions {
  readonly url: string;
  /** A different name for which the certificate must be valid. */
  readonly servername?: string;
  /** SHA-256 of the only accepted certificate, in hexadecimal. */
  readonly fingerprint?: string;
  /** Accepts any certificate: a man in the middle can read and change everything. */
  readonly insecure?: boolean;
}

interface LinkServer {
  readonly name: "main" | "backup";
  readonly url: string;
  readonly tls: TlsVerifyOptions;
}

/** The name of the carrier of one entry: the route of its answers. An agent may have links to several platforms. */
export function linkRoute(entry: DialledEntry, entries: readonly DialledEntry[]): string {
  const name = `${LINK_DIALECT}:${entry.agentId}`;
  const first = entries.find(({ agentId }) => agentId === entry.agentId);
  return first === entry ? name : `${name}@${new URL(linkServersOf(entry)[0].url).host}`;
}

/** Throws a TypeError for invalid options. */
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

/** Unencrypted only on this machine. */
export function isLinkUrl(url: string): boolean {
  if (!canParseUrl(url)) return false;
  const { protocol } = new URL(url);
  return protocol === "wss:" || (protocol === "ws:" && isLocalUrl(url));
}

function parseLinkUrl(agent: string, url: string): URL {
  if (isLinkUrl(url)) return new URL(url);
  throw new TypeError(`xiaoyi.links: the address of "${agent}" must be wss, or ws on this machine.`);
}

/** The platform closes a link when the same agent opens another, so two would close each other forever. */
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

/** The timestamp is signed, so headers are created for every connection. */
export function dialHeaders({ agentId, ak, sk }: DialledEntry, now: number): Record<string, string> {
  return { ...signedHeaders({ accessKey: ak, secretKey: sk }, now), "x-agent-id": agentId };
}
