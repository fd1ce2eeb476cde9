import { createHash } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import { authenticate, type RegisteredAgent } from "../authentication.ts";
import { type Route, readBody, replyJson } from "../http-server.ts";
import { DecodeError, parseObject, textOf } from "../json.ts";
import type { HostedFile, UserFile } from "../phone.ts";
import { hexDigits, type Random, uuidFrom } from "../random.ts";
import type { Report } from "../violations.ts";

const PREFIX = "/files/";

/** Files attached by users, at URLs that require no credentials, as on the platform. */
export function createHostedFiles(random: Random, origin: () => string) {
  const files = new Map<string, UserFile>();

  function add({ bytes, mimeType, name }: UserFile): HostedFile {
    const path = `${PREFIX}${uuidFrom(random)}/${encodeURIComponent(name)}`;
    files.set(path, { bytes, mimeType, name });
    return { name, mimeType, uri: `${origin()}${path}` };
  }

  const route: Route = async (request, { pathname }, response) => {
    if (request.method !== "GET" || !pathname.startsWith(PREFIX)) return false;
    const bytes = files.get(pathname)?.bytes;
    if (bytes === undefined) response.writeHead(404).end();
    else {
      const headers = { "content-type": "application/octet-stream", "content-length": bytes.byteLength };
      response.writeHead(200, headers).end(bytes);
    }
    return true;
  };

  return { add, route };
}

const MANAGER = "/osms/v1/file/manager/";
const STORAGE = "/osms/storage/";
const UPLOAD_HEADER = "x-upload-token";

interface UploadOptions {
  readonly random: Random;
  readonly report: Report;
  readonly agents: readonly RegisteredAgent[];
  readonly origin: () => string;
}

interface Upload {
  readonly objectId: string;
  readonly draftId: string;
  readonly token: string;
  readonly fileName: string;
  readonly sha256: string;
  readonly size: number;
  bytes: Buffer | undefined;
  complete: boolean;
}

/** Uploads by agents in three steps: prepare, send the bytes, complete. */
export class Uploads {
  readonly #options: UploadOptions;
  readonly #uploads = new Map<string, Upload>();

  constructor(options: UploadOptions) {
    this.#options = options;
  }

  has(fileId: string): boolean {
    return this.#uploads.get(fileId)?.complete === true;
  }

  bytes(fileId: string): Buffer | undefined {
    return this.#uploads.get(fileId)?.bytes;
  }

  readonly route: Route = async (request, { pathname }, response) => {
    if (pathname.startsWith(STORAGE)) {
      if (request.method === "GET") this.#download(pathname.slice(STORAGE.length), response);
      else if (request.method === "PUT") {
        const body = (await readBody(request)) ?? Buffer.alloc(0);
        this.#try(response, () => this.#store(pathname.slice(STORAGE.length), request.headers, body));
      } else return false;
      return true;
    }
    if (request.method !== "POST" || !pathname.startsWith(MANAGER)) return false;
    const body = parseObject((await readBody(request))?.toString("utf8") ?? "") ?? {};
    this.#try(response, () => this.#manage(pathname.slice(MANAGER.length), request.headers, body));
    return true;
  };

  #try(response: ServerResponse, answer: () => Fields): void {
    try {
      replyJson(response, 200, answer());
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#options.report("bad-upload", error.message);
      replyJson(response, 400, { code: "400", desc: error.message });
    }
  }

  #manage(step: string, headers: IncomingHttpHeaders, body: Fields): Fields {
    // Signed requests are not accepted: only the second set of credentials can upload.
    const admission = authenticate(
      { "x-api-key": "", ...headers },
      { agents: this.#options.agents, skewMs: 0, now: 0 },
    );
    if ("status" in admission) throw new DecodeError(admission.reason);
    if (step === "prepare") return this.#prepare(body, admission.agent.uid ?? "");
    if (step === "complete") return this.#complete(body, false);
    if (step === "completeAndQuery") return this.#complete(body, true);
    throw new DecodeError(`There is no step ${step}.`);
  }

  #prepare(body: Fields, uid: string): Fields {
    const { fileName, fileOwnerInfo, fileSha256, fileSize, objectType } = body;
    if (objectType !== "TEMPORARY_MATERIAL_DOC") throw new DecodeError("objectType is not TEMPORARY_MATERIAL_DOC.");
    if (typeof fileName !== "string" || typeof fileSha256 !== "string" || typeof fileSize !== "number") {
      throw new DecodeError("fileName, fileSha256 or fileSize is missing.");
    }
    if (fieldsOf(fileOwnerInfo).uid !== uid) throw new DecodeError("fileOwnerInfo.uid is not the caller's.");
    const { origin, random } = this.#options;
    const [objectId, draftId, token] = [hexDigits(random, 32), hexDigits(random, 32), hexDigits(random, 32)];
    const upload = { objectId, draftId, token, fileName, sha256: fileSha256, size: fileSize };
    this.#uploads.set(objectId, { ...upload, bytes: undefined, complete: false });
    const target = { url: `${origin()}${STORAGE}${objectId}`, method: "PUT", headers: { [UPLOAD_HEADER]: token } };
    return { code: "0", desc: "success", objectId, draftId, uploadInfos: [target] };
  }

  #store(objectId: string, headers: IncomingHttpHeaders, bytes: Buffer): Fields {
    const upload = this.#uploads.get(objectId);
    if (upload === undefined) throw new DecodeError("Nothing was prepared for this upload.");
    if (headers[UPLOAD_HEADER] !== upload.token)
      throw new DecodeError("The headers that were asked for are not there.");
    if (bytes.byteLength !== upload.size)
      throw new DecodeError(`There are ${bytes.byteLength} bytes, not ${upload.size}.`);
    const digest = createHash("sha256").update(bytes).digest("hex");
    if (digest !== upload.sha256.toLowerCase()) throw new DecodeError("The bytes do not have the announced SHA-256.");
    upload.bytes = bytes;
    return { code: "0" };
  }

  #complete(body: Fields, query: boolean): Fields {
    const upload = this.#uploads.get(textOf(body.objectId) ?? "");
    if (upload === undefined || body.draftId !== upload.draftId) throw new DecodeError("Upload not found.");
    if (upload.bytes === undefined) throw new DecodeError("The bytes have not come.");
    upload.complete = true;
    const url = `${this.#options.origin()}${STORAGE}${upload.objectId}`;
    const detail = { fileName: upload.fileName, objectId: upload.objectId, url };
    return { code: "0", desc: "success", ...(query ? { fileDetailInfo: detail } : {}) };
  }

  #download(objectId: string, response: ServerResponse): void {
    const upload = this.#uploads.get(objectId);
    if (upload?.complete === true) response.writeHead(200).end(upload.bytes);
    else response.writeHead(404).end();
  }
}
