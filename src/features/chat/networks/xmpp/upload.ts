/** Files by the upload service of the server (XEP-0363). */

import type { Client, xml as createElement, Element } from "@xmpp/client";
import { canParseUrl, parseUrl } from "../../../../core/model/url.ts";
import { ChannelError, type DraftFile, type PostFile } from "../../../../core/wire/channel.ts";
import { safeFileName } from "../../../../core/wire/safe-file-name.ts";

const NS_DISCO_ITEMS = "http://jabber.org/protocol/disco#items";
const NS_DISCO_INFO = "http://jabber.org/protocol/disco#info";
const NS_UPLOAD = "urn:xmpp:http:upload:0";
/** Where the service does not state a maximum. */
const DEFAULT_MAX_BYTES = 10 * 1024 * 1024;

export interface UploadService {
  readonly maxBytes: number;
  upload(file: DraftFile): Promise<{ readonly name: string; readonly url: string }>;
  toFile(url: string, name: string): PostFile;
}

/** Undefined: the server has no such service. */
export async function findUploadService(
  client: Client,
  xml: typeof createElement,
  domain: string,
): Promise<UploadService | undefined> {
  const query = (to: string, xmlns: string): Promise<Element> =>
    client.iqCaller.request(xml("iq", { type: "get", to }, xml("query", { xmlns })));
  const items = (await query(domain, NS_DISCO_ITEMS)).getChild("query", NS_DISCO_ITEMS)?.getChildren("item") ?? [];
  for (const jid of [domain, ...items.flatMap(({ attrs }) => attrs.jid ?? [])]) {
    const info = (await query(jid, NS_DISCO_INFO).catch(() => undefined))?.getChild("query", NS_DISCO_INFO);
    if (info?.getChildren("feature").some(({ attrs }) => attrs.var === NS_UPLOAD) !== true) continue;
    return createUploadService(client, xml, jid, maxBytesOf(info));
  }
  return undefined;
}

function maxBytesOf(info: Element): number {
  const fields = info.getChildren("x", "jabber:x:data").flatMap((form) => form.getChildren("field"));
  const value = Number(fields.find(({ attrs }) => attrs.var === "max-file-size")?.getChildText("value"));
  return value > 0 ? value : DEFAULT_MAX_BYTES;
}

async function createUploadService(
  client: Client,
  xml: typeof createElement,
  jid: string,
  maxBytes: number,
): Promise<UploadService> {
  async function requestSlot(filename: string, size: number, type: string) {
    const attrs = { xmlns: NS_UPLOAD, filename, size: String(size), "content-type": type };
    const reply = await client.iqCaller.request(xml("iq", { type: "get", to: jid }, xml("request", attrs)));
    const slot = reply.getChild("slot", NS_UPLOAD);
    const put = slot?.getChild("put");
    const get = slot?.getChild("get")?.attrs.url;
    if (put?.attrs.url === undefined || get === undefined)
      throw new ChannelError("refused", "The server gave no slot.");
    const headers = put.getChildren("header").map((one) => [one.attrs.name ?? "", one.text()] as const);
    return { put: put.attrs.url, get, headers };
  }
  // Posts of others may name any address: only those of the service are read.
  const { origin } = new URL((await requestSlot("a.txt", 1, "text/plain")).get);

  return {
    maxBytes,
    async upload({ bytes, mediaType, name }) {
      const { get, headers, put } = await requestSlot(safeFileName(name), bytes.byteLength, mediaType);
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const reply = await fetch(put, {
        method: "PUT",
        headers: { ...Object.fromEntries(headers), "content-type": mediaType },
        body,
      });
      await reply.body?.cancel();
      if (!reply.ok) throw new ChannelError("refused", `The file ${name} was refused with status ${reply.status}.`);
      return { name, url: get };
    },
    toFile(url, name) {
      const last = parseUrl(url)?.pathname.split("/").at(-1) ?? "";
      return {
        name: safeFileName(name === "" ? decodeName(last) : name),
        mediaType: "application/octet-stream",
        async read(limit, signal) {
          if (!canParseUrl(url) || new URL(url).origin !== origin)
            throw new Error("The file is not at the upload service.");
          return await readBounded(await fetch(url, { redirect: "error", signal: signal ?? null }), limit);
        },
      };
    },
  };
}

function decodeName(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

async function readBounded(reply: Response, maxBytes: number): Promise<Uint8Array> {
  if (!reply.ok || reply.body === null) throw new Error(`The file was refused with status ${reply.status}.`);
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of reply.body) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new Error(`The file has more than ${maxBytes} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Stands for a file where the server has no upload service. */
export function unreadableFile(name: string) {
  return {
    name,
    mediaType: "application/octet-stream",
    read: () => Promise.reject(new Error("The server has no upload service.")),
  };
}
