/** Requests of the Matrix client-server API. */

import type { Clock } from "../../../../core/model/ports.ts";
import { ChannelError, type DraftFile } from "../../../../core/wire/channel.ts";
import { readAtMost } from "../read-at-most.ts";

export interface MatrixApi {
  get<T>(path: string, options: GetOptions): Promise<T>;
  /** Undefined if it does not exist or this participant may not see it. */
  find<T>(path: string, signal: AbortSignal): Promise<T | undefined>;
  put<T>(path: string, body: object, signal: AbortSignal): Promise<T>;
  post<T>(path: string, body: object, signal: AbortSignal): Promise<T>;
  /** Resolves with the `mxc:` URI. */
  upload(file: DraftFile, signal: AbortSignal): Promise<string>;
  download(uri: string, maxBytes: number, signal?: AbortSignal): Promise<Uint8Array>;
}

interface GetOptions {
  readonly query?: Readonly<Record<string, string>>;
  /** How long the server may wait before it answers. */
  readonly waitMs?: number;
  readonly signal: AbortSignal;
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Uint8Array;
  readonly mediaType?: string;
  readonly waitMs?: number | undefined;
  readonly signal: AbortSignal;
}

/** An answer that is an error, by the code of the specification. */
export class MatrixError extends Error {
  override readonly name = "MatrixError";
  readonly status: number;
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, code: string, text: string, retryAfterMs?: number) {
    super(text === "" ? `${code} (status ${status})` : `${code}: ${text}`);
    this.status = status;
    this.code = code;
    this.retryAfterMs = retryAfterMs;
  }
}

const REQUEST_TIMEOUT_MS = 30_000;

export function createMatrixApi(
  { homeserver, token }: { readonly homeserver: string; readonly token: string },
  clock: Clock,
): MatrixApi {
  const base = homeserver.replace(/\/+$/, "");

  /** The answer is read by `read` before the time is over. */
  async function call<T>(request: Call, read: (response: Response) => Promise<T>): Promise<T> {
    const { body, mediaType, method, path, query, signal, waitMs = 0 } = request;
    const search = query === undefined ? "" : `?${new URLSearchParams(query)}`;
    const timeout = new AbortController();
    const cancel = clock.after(waitMs + REQUEST_TIMEOUT_MS, () =>
      timeout.abort(new Error("The homeserver did not answer in time.")),
    );
    try {
      const response = await fetch(`${base}/_matrix/${path}${search}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { "content-type": mediaType ?? "" }) },
        ...(body !== undefined && { body }),
        signal: AbortSignal.any([signal, timeout.signal]),
      });
      if (!response.ok) throw await toMatrixError(response);
      return await read(response);
    } finally {
      cancel();
    }
  }

  const json = <T>(response: Response): Promise<T> => response.json() as Promise<T>;
  const sendJson = <T>(method: string, path: string, body: object, signal: AbortSignal): Promise<T> =>
    call(
      { method, path: `client/${path}`, body: JSON.stringify(body), mediaType: "application/json", signal },
      json<T>,
    );

  return {
    get: <T>(path: string, options: GetOptions) => call({ method: "GET", path: `client/${path}`, ...options }, json<T>),
    async find<T>(path: string, signal: AbortSignal) {
      try {
        return await call({ method: "GET", path: `client/${path}`, signal }, json<T>);
      } catch (error) {
        if (error instanceof MatrixError && (error.status === 404 || error.status === 403)) return undefined;
        throw error;
      }
    },
    put: (path, body, signal) => sendJson("PUT", path, body, signal),
    post: (path, body, signal) => sendJson("POST", path, body, signal),
    async upload({ bytes, mediaType, name }, signal) {
      const query = { filename: name };
      const request = { method: "POST", path: "media/v3/upload", query, body: bytes, mediaType, signal };
      return (await call(request, json<{ content_uri: string }>)).content_uri;
    },
    download(uri, maxBytes, signal = new AbortController().signal) {
      const media = uri.slice("mxc://".length).split("/").map(encodeURIComponent).join("/");
      return call({ method: "GET", path: `client/v1/media/download/${media}`, signal }, (response) =>
        readAtMost(response.body ?? new ReadableStream(), maxBytes),
      );
    },
  };
}

/** What a failed post means to its sender. An answer of 5xx does not say whether the event was stored. */
export function toPostError(error: unknown): unknown {
  if (!(error instanceof MatrixError) || error.status >= 500) return error;
  const { message, retryAfterMs = 1_000, status } = error;
  if (status === 429) return new ChannelError("rate-limited", message, { retryAfterMs, cause: error });
  if (status === 401) return new ChannelError("closed", message, { cause: error });
  return new ChannelError(status === 403 || status === 404 ? "no-access" : "refused", message, { cause: error });
}

async function toMatrixError(response: Response): Promise<MatrixError> {
  const body: unknown = await response.json().catch(() => undefined);
  const { errcode, error, retry_after_ms } = (typeof body === "object" && body !== null ? body : {}) as Readonly<
    Record<string, unknown>
  >;
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  const waitMs = typeof retry_after_ms === "number" ? retry_after_ms : seconds * 1000;
  return new MatrixError(
    response.status,
    typeof errcode === "string" ? errcode : "M_UNKNOWN",
    typeof error === "string" ? error : "",
    Number.isFinite(waitMs) && waitMs >= 0 ? waitMs : undefined,
  );
}
