/** Giving the platform a file to show: it is told of it, takes its bytes where it says, and is told that they are there. */

import { createHash } from "node:crypto";
import type { Exchanger } from "../../wire/exchange.ts";
import { isRecord } from "../shared/proto/json-reading.ts";
import type { OutgoingFile, UploadFile } from "./uploads.ts";

export interface UploadAccount {
  readonly uid: string;
  readonly apiKey: string;
}

interface UploadCarriers {
  /** To the platform's own address. */
  readonly ask: Exchanger;
  /** To wherever the platform says the bytes go, hence one that may be sent to targets that others name. */
  readonly send: (url: string, request: BytesRequest) => Promise<{ readonly status: number }>;
}

export interface BytesRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array<ArrayBuffer>;
}

/** A local error. It quotes nothing that the platform said: addresses for uploads are keys. */
export class UploadError extends Error {
  override readonly name = "UploadError";
}

type Fields = Readonly<Record<string, unknown>>;

const TIMEOUT_MS = 30_000;

/** Rejects with an UploadError, or with the error of a carrier. */
export function createUpload(account: UploadAccount, baseUrl: string, { ask, send }: UploadCarriers): UploadFile {
  const { apiKey, uid } = account;
  const manager = `${baseUrl.replace(/\/+$/, "")}/osms/v1/file/manager`;
  const headers = {
    "content-type": "application/json",
    accept: "application/json",
    "x-uid": uid,
    "x-api-key": apiKey,
    "x-request-from": "openclaw",
  };

  async function manage(step: "prepare" | "complete", words: object): Promise<Fields> {
    const call = { method: "POST", url: `${manager}/${step}`, headers, body: JSON.stringify(words) };
    const answer = await ask({ ...call, timeoutMs: TIMEOUT_MS });
    const said = fieldsIn(await answer.text());
    // A word, in their documents; a number, in some answers.
    if (answer.status === 200 && String(said.code) === "0") return said;
    throw new UploadError(`Xiaoyi refused to ${step} an upload with status ${answer.status}.`);
  }

  return async (file) => {
    const prepared = await manage("prepare", preparation(file, uid));
    const { draftId, objectId } = prepared;
    const { url, ...request } = targetIn(prepared);
    if (typeof objectId !== "string") throw new UploadError("Xiaoyi prepared an upload without an id.");
    const { status } = await send(url, { ...request, body: new Uint8Array(file.bytes) });
    if (status < 200 || status > 299)
      throw new UploadError(`The bytes of an upload were refused with status ${status}.`);
    await manage("complete", { objectId, draftId });
    return objectId;
  };
}

function preparation({ bytes, name }: OutgoingFile, uid: string): object {
  return {
    objectType: "TEMPORARY_MATERIAL_DOC",
    fileName: name,
    fileSha256: createHash("sha256").update(bytes).digest("hex"),
    fileSize: bytes.byteLength,
    fileOwnerInfo: { uid, teamId: uid },
    useEdge: false,
  };
}

/** The first is as good as any: all of them are for all bytes. */
function targetIn({ uploadInfos }: Fields): { readonly url: string } & Pick<BytesRequest, "headers" | "method"> {
  const [info] = Array.isArray(uploadInfos) ? uploadInfos : [];
  const { headers, method, url } = isRecord(info) ? info : {};
  if (typeof url !== "string") throw new UploadError("Xiaoyi did not say where the bytes of an upload go.");
  const given = isRecord(headers) ? Object.entries(headers) : [];
  return {
    url,
    method: typeof method === "string" ? method : "PUT",
    headers: Object.fromEntries(given.map(([name, value]) => [name, String(value)])),
  };
}

function fieldsIn(text: string): Fields {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    // The status says what there is to know.
    return {};
  }
}
