import { createGuardedFetch } from "../../auth/guarded-fetch/guarded-fetch.ts";
import { createUpload, type UploadAccount } from "../../dialects/xiaoyi/upload.ts";
import type { UploadFile } from "../../dialects/xiaoyi/uploads.ts";
import { createTrustedExchanger, isOnThisMachine } from "./trusted-exchanger.ts";

export const XIAOYI_UPLOAD_URL = "https://hag-drcn.op.dbankcloud.com";

const LARGEST_ANSWER = 256 * 1024;
/** For all bytes of one file. */
const SENDING_MS = 120_000;

/** Only a platform on this machine may name targets on it. */
export function uploadAs(account: UploadAccount, url: string = XIAOYI_UPLOAD_URL): UploadFile {
  const limits = { maxRedirects: 0, maxBytes: LARGEST_ANSWER, timeoutMs: SENDING_MS };
  const fetch = createGuardedFetch({ ...limits, allowPrivate: isOnThisMachine(url) });
  return createUpload(account, url, {
    ask: createTrustedExchanger(LARGEST_ANSWER),
    send: async (target, { headers, ...request }) => {
      const { body, status } = await fetch(target, { ...request, headers: { ...headers } });
      await body?.cancel();
      return { status };
    },
  });
}
