/** Services that both Xiaoyi dialects share on one server: users' files, and notifications for users who left. */

import { dirname, join, resolve } from "node:path";
import { createGuardedFetch } from "../../../core/auth/guarded-fetch/guarded-fetch.ts";
import type { Carrier } from "../../../core/dialects/carrier.ts";
import type { Clock, Log, Meter } from "../../../core/model/ports.ts";
import type { Language } from "../codec/phone-texts.ts";
import type { FileIntake, OfflineNotifications } from "../runtime/ports.ts";
import { createFileIntake } from "./files/file-intake.ts";
import { FileStore } from "./files/file-store.ts";
import { DEVICE_SPACING_MS, DeviceSpacing } from "./notify/devices.ts";
import { NotificationSender } from "./notify/notification-sender.ts";
import { entryKey, type NotificationHost, PhoneNotifications } from "./notify/offline-notifications.ts";
import { createTrustedExchanger, isSafeUrl } from "./trusted-exchanger.ts";

export const XIAOYI_PUSH_URL = "https://hag.cloud.huawei.com/open-ability-agent/v1/agent-webhook";
export const PUSH_DEVICES = ["session", "all"] as const;

/** How users who left before the answer arrived are notified. */
export interface XiaoyiPushOptions {
  /** The id of the webhook trigger in the platform's console. */
  readonly apiId: string;
  /** Default: the platform's URL. `http:` only on this machine. */
  readonly url?: string;
  /** Default: the keys of the entry. */
  readonly ak?: string;
  readonly sk?: string;
  /**
   * The devices of the conversation, or all that ever sent a message to the agent, which is right if all belong to one
   * user.
   */
  readonly devices?: (typeof PUSH_DEVICES)[number];
  /** Minimum interval between notifications. Default: 15 s, which is also the minimum for one device. */
  readonly spacingMs?: number;
}

export interface XiaoyiFilesOptions {
  /** Maximum size of one file. Default: 30 MiB. */
  readonly maxBytes?: number;
  /** Timeout for fetching one file. Default: 60 s. */
  readonly timeoutMs?: number;
  /** Hosts and addresses in private networks from which files may be fetched. */
  readonly allowHosts?: readonly string[];
  /** Maximum size of all files. Default: 1 GiB. */
  readonly quotaBytes?: number;
  /** How long files are stored. Default: 7 days. */
  readonly keepMs?: number;
}

/** An entry of either dialect. */
interface NotifiedEntry {
  readonly dialect: string;
  readonly agent: string;
  readonly owner: string;
  readonly language: Language;
  readonly push?: XiaoyiPushOptions | undefined;
  readonly ak?: string | undefined;
  readonly sk?: string | undefined;
  /** The default for which devices are notified. */
  readonly devices: (typeof PUSH_DEVICES)[number];
}

export interface PhoneServices {
  readonly intake: FileIntake;
  /** Undefined if the entry has no push options. Throws a TypeError for invalid ones. */
  notificationsFor(entry: NotifiedEntry): OfflineNotifications | undefined;
  /** Loads what an earlier process stored. Returns the routes of all notifications. */
  start(): Promise<readonly Carrier[]>;
  stop(): Promise<void>;
}

export interface PhoneServicesContext {
  /** The store of the tasks. */
  readonly store: string | undefined;
  readonly baseDirectory: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly uniqueId: () => string;
  readonly log: Log;
  readonly meter: Meter;
  /** Throws before the server has started. */
  readonly host: () => NotificationHost;
}

const MEBIBYTE = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1_000;
const MAX_RESPONSE_BYTES = 64 * 1024;

export function openPhoneServices(files: XiaoyiFilesOptions, deps: PhoneServicesContext): PhoneServices {
  const { clock, log } = deps;
  const { folder } = pathsBesideStore(deps);
  const { allowHosts = [], maxBytes = 30 * MEBIBYTE, timeoutMs = 60_000 } = files;
  const { keepMs = 7 * DAY_MS, quotaBytes = 1024 * MEBIBYTE } = files;
  const fetch = createGuardedFetch({ allow: allowHosts, maxBytes, timeoutMs, maxRedirects: 0 });
  const store = new FileStore({ folder, quotaBytes, keepMs, clock, log });
  const devices = new DeviceSpacing(() => deps.host().records, log);
  /** By entry: several HTTP entries of an agent may differ in their credentials alone. */
  const notifications = new Map<string, PhoneNotifications>();
  return {
    intake: createFileIntake({ fetch, store, log }),
    notificationsFor({ agent, dialect, language, owner, push, ...entry }) {
      if (push === undefined) return undefined;
      const id = { dialect, agent, owner, apiId: push.apiId };
      const known = notifications.get(entryKey(id));
      if (known !== undefined) return known;
      const made = new PhoneNotifications({
        ...deps,
        entry: id,
        language,
        everyDevice: (push.devices ?? entry.devices) === "all",
        push: createSender({ agent, language, ...entry }, push, devices, deps),
      });
      notifications.set(entryKey(id), made);
      return made;
    },
    async start() {
      const loading = [store.start(), notifications.size > 0 ? devices.load() : undefined];
      for (const result of await Promise.allSettled(loading)) {
        if (result.status === "rejected") {
          log.warn({ err: result.reason }, "The files and notifications of Xiaoyi's users could not be read.");
        }
      }
      return [...notifications.values()].map((one) => ({
        name: one.route,
        deliver: (delivery) => one.deliver(delivery),
        settle: () => Promise.resolve(),
        close: () => one.stop(),
      }));
    },
    stop: () => store.stop(),
  };
}

function createSender(
  entry: Pick<NotifiedEntry, "agent" | "ak" | "language" | "sk">,
  push: XiaoyiPushOptions,
  devices: DeviceSpacing,
  deps: PhoneServicesContext,
): NotificationSender {
  const { apiId, spacingMs = DEVICE_SPACING_MS, url = XIAOYI_PUSH_URL } = push;
  const accessKey = push.ak ?? entry.ak;
  const secretKey = push.sk ?? entry.sk;
  if (accessKey === undefined || secretKey === undefined) {
    throw new TypeError(`xiaoyi: the push of "${entry.agent}" needs ak and sk.`);
  }
  if (!isSafeUrl(url)) throw new TypeError(`xiaoyi: the push of "${entry.agent}" must go to an https address.`);
  return new NotificationSender({
    ...deps,
    url,
    apiId,
    keys: { accessKey, secretKey },
    language: entry.language,
    spacingMs,
    devices,
    exchanger: createTrustedExchanger(MAX_RESPONSE_BYTES),
  });
}

const SQLITE = "sqlite:";

/** Next to the task store if it is a file; if tasks are lost with the process, so are files. */
export function pathsBesideStore({ baseDirectory, store }: Pick<PhoneServicesContext, "baseDirectory" | "store">) {
  if (store === undefined || store === "memory:") return { folder: undefined, database: undefined };
  if (!store.startsWith(SQLITE)) return { folder: resolve(baseDirectory, ".dragoman/files"), database: undefined };
  const database = resolve(baseDirectory, store.slice(SQLITE.length));
  return { folder: join(dirname(database), "files"), database };
}
