/** Requests of DingTalk's API that a robot needs. */

import type { Clock } from "../../../../core/model/ports.ts";
import { ChannelError } from "../../../../core/wire/channel.ts";
import { download } from "../download.ts";

export interface DingtalkApi {
  /** Resolves with the address of a stream, which can be dialled once. */
  openStream(subscriptions: readonly object[], signal: AbortSignal): Promise<string>;
  /** False if the webhook is no longer valid. */
  sendBySession(webhook: string, text: string, mentions: readonly string[], signal: AbortSignal): Promise<boolean>;
  /** To a group or a person. */
  sendText(room: string, text: string, signal: AbortSignal): Promise<void>;
  download(code: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array>;
}

interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly api?: string | undefined;
}

export class DingtalkError extends Error {
  override readonly name = "DingtalkError";
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(`${message || "refused"} (${code})`);
    this.status = status;
    this.code = code;
  }
}

const REQUEST_TIMEOUT_MS = 30_000;
/** More than 20 messages in a minute. */
const TOO_FAST = "130101";
const BLOCKED_MS = 10 * 60_000;
/** The webhook of a conversation has ended, or never was. */
const STALE_WEBHOOK: ReadonlySet<string> = new Set(["300001", "300005", "310000"]);
const TOKEN_MARGIN_MS = 5 * 60_000;

export function createDingtalkApi(
  { api = "https://api.dingtalk.com", clientId, clientSecret }: Credentials,
  clock: Clock,
): DingtalkApi {
  const base = api.replace(/\/+$/, "");
  let token: { readonly value: string; readonly until: number } | undefined;

  async function request(url: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
    const late = new AbortController();
    const cancel = clock.after(REQUEST_TIMEOUT_MS, () => late.abort(new Error("DingTalk did not answer in time.")));
    try {
      return await fetch(url, { ...init, signal: AbortSignal.any([signal, late.signal]) });
    } finally {
      cancel();
    }
  }

  async function post(url: string, body: object, signal: AbortSignal, headers = {}): Promise<Json> {
    const init = {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(body),
    };
    const response = await request(url, init, signal);
    const json = (await response.json().catch(() => ({}))) as Json;
    if (!response.ok)
      throw new DingtalkError(response.status, `${json.code ?? response.status}`, `${json.message ?? ""}`);
    return json;
  }

  async function callRobot(path: string, body: object, signal: AbortSignal): Promise<Json> {
    if (token === undefined || token.until <= clock.now()) {
      const got = await post(`${base}/v1.0/oauth2/accessToken`, { appKey: clientId, appSecret: clientSecret }, signal);
      const until = clock.now() + Number(got.expireIn ?? 0) * 1000 - TOKEN_MARGIN_MS;
      token = { value: `${got.accessToken}`, until };
    }
    try {
      const headers = { "x-acs-dingtalk-access-token": token.value };
      return await post(`${base}/v1.0/robot/${path}`, { robotCode: clientId, ...body }, signal, headers);
    } catch (error) {
      if (error instanceof DingtalkError && error.status === 401) token = undefined;
      throw error;
    }
  }

  return {
    async openStream(subscriptions, signal) {
      const body = { clientId, clientSecret, subscriptions, ua: "" };
      const { endpoint, ticket } = await post(`${base}/v1.0/gateway/connections/open`, body, signal);
      return `${endpoint}?ticket=${encodeURIComponent(`${ticket}`)}`;
    },
    async sendBySession(webhook, content, mentions, signal) {
      const body = { msgtype: "text", text: { content }, at: { atUserIds: mentions, isAtAll: false } };
      const { errcode = 0, errmsg = "" } = await post(webhook, body, signal);
      if (STALE_WEBHOOK.has(`${errcode}`)) return false;
      if (errcode !== 0) throw new DingtalkError(400, `${errcode}`, `${errmsg}`);
      return true;
    },
    async sendText(room, content, signal) {
      const message = { msgKey: "sampleText", msgParam: JSON.stringify({ content }) };
      if (room.startsWith("cid")) {
        await callRobot("groupMessages/send", { ...message, openConversationId: room }, signal);
        return;
      }
      const { flowControlledStaffIdList = [], invalidStaffIdList = [] } = await callRobot(
        "oToMessages/batchSend",
        { ...message, userIds: [room] },
        signal,
      );
      const isIn = (list: unknown): boolean => Array.isArray(list) && list.includes(room);
      if (isIn(flowControlledStaffIdList)) throw new DingtalkError(429, "flowControlled", "Too many messages");
      if (isIn(invalidStaffIdList)) throw new DingtalkError(404, "invalidStaffId", `Unknown person ${room}`);
    },
    async download(downloadCode, maxBytes, signal) {
      const { downloadUrl } = await callRobot("messageFiles/download", { downloadCode }, signal);
      return download(`${downloadUrl}`, { maxBytes, signal });
    },
  };
}

type Json = Readonly<Record<string, unknown>>;

/** An answer of 5xx, or that the token is not valid, does not say that the post will never be accepted. */
export function toPostError(error: unknown): unknown {
  if (!(error instanceof DingtalkError) || error.status >= 500 || error.status === 401) return error;
  const { code, message, status } = error;
  if (code === TOO_FAST) return new ChannelError("rate-limited", message, { retryAfterMs: BLOCKED_MS, cause: error });
  if (status === 429 || /throttl|flowcontrol/i.test(code)) {
    return new ChannelError("rate-limited", message, { retryAfterMs: 60_000, cause: error });
  }
  return new ChannelError(status === 403 || status === 404 ? "no-access" : "refused", message, { cause: error });
}
