/** What a server is told about Xiaoyi. */
import type { Language } from "../../dialects/xiaoyi/phone-texts.ts";
import type { RenderMode } from "../../dialects/xiaoyi/render.ts";
import type { BackoffPolicy } from "../../wire/backoff.ts";
import type { DialledEntry } from "./link-servers.ts";
import type { XiaoyiHttpEntryOptions } from "./open-http.ts";
import type { XiaoyiFilesOptions, XiaoyiPushOptions } from "./phone-services.ts";

export interface XiaoyiOptions {
  /** Agents that the platform calls at `/agents/NAME/agent/message`. */
  readonly http?: readonly XiaoyiHttpEntryOptions[];
  /** Agents that dial the platform. */
  readonly links?: readonly XiaoyiLinkOptions[];
  /** What becomes of the files that users send. */
  readonly files?: XiaoyiFilesOptions;
}

/** One agent that dials the platform. */
export interface XiaoyiLinkOptions extends DialledEntry {
  /** To whom its tasks belong. */
  readonly owner?: string;
  /** `phone` (the default) or `spec`. */
  readonly render?: RenderMode;
  /** Of what the server itself says to people; `zh` (the default) or `en`. */
  readonly language?: Language;
  /** Between two heartbeats; 20 s unless given. */
  readonly heartbeatMs?: number;
  /** When a link that closed is opened again; see `RECONNECT` for what is not given. */
  readonly reconnect?: Partial<BackoffPolicy>;
  /** With `apiKey`: lets the agent send files to the phone. */
  readonly uid?: string;
  readonly apiKey?: string;
  /** Where files are uploaded; Huawei's server unless given. */
  readonly uploadUrl?: string;
  /** Tells the user who left before the answer came. */
  readonly push?: XiaoyiPushOptions;
}
