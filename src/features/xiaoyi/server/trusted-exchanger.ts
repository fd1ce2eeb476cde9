/** Requests to URLs that the operator configured. */

import { createGuardedFetch } from "../../../core/auth/guarded-fetch/guarded-fetch.ts";
import { canParseUrl } from "../../../core/model/url.ts";
import { isLoopback } from "../../../core/server/access/loopback.ts";
import type { Exchanger } from "../../../core/wire/exchange.ts";
import { createFetchExchanger } from "../../../core/wire/fetch-exchange.ts";
import { createUploader, type UploadAccount, type UploadFile } from "../runtime/upload.ts";

/** Redirects are not followed: credentials would be sent along. */
export function createTrustedExchanger(maxBodyBytes: number): Exchanger {
  return createFetchExchanger((input, init) => fetch(input, { ...init, redirect: "error" }), { maxBodyBytes });
}

export function isLocalUrl(url: string): boolean {
  return canParseUrl(url) && isLoopback(new URL(url).hostname);
}

/** Unencrypted only on this machine. */
export function isSafeUrl(url: string): boolean {
  if (!canParseUrl(url)) return false;
  const { protocol } = new URL(url);
  return protocol === "https:" || (protocol === "http:" && isLocalUrl(url));
}

export const XIAOYI_UPLOAD_URL = "https://hag-drcn.op.dbankcloud.com";

const MAX_RESPONSE_BYTES = 256 * 1024;
const UPLOAD_TIMEOUT_MS = 120_000;

/** Only a platform on this machine may name upload targets on it. */
export function createPlatformUpload(account: UploadAccount, url: string = XIAOYI_UPLOAD_URL): UploadFile {
  const limits = { maxRedirects: 0, maxBytes: MAX_RESPONSE_BYTES, timeoutMs: UPLOAD_TIMEOUT_MS };
  const fetch = createGuardedFetch({ ...limits, allowPrivate: isLocalUrl(url) });
  return createUploader(account, url, {
    ask: createTrustedExchanger(MAX_RESPONSE_BYTES),
    send: async (target, { headers, ...request }) => {
      const { body, status } = await fetch(target, { ...request, headers: { ...headers } });
      await body?.cancel();
      return { status };
    },
  });
}
