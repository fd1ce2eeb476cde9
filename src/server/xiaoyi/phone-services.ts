/** What both ways to Xiaoyi share on one server: files of its users, and news for those who left. */
import { dirname, join, resolve } from "node:path";
import { createGuardedFetch } from "../../auth/guarded-fetch/guarded-fetch.ts";
import type { AgentService } from "../../dialects/contract.ts";
import type { FileIntake } from "../../dialects/xiaoyi/file-intake.ts";
import type { Notes } from "../../dialects/xiaoyi/notes.ts";
import type { Notices } from "../../dialects/xiaoyi/notices.ts";
import type { Language } from "../../dialects/xiaoyi/phone-texts.ts";
import type { Clock, Log, Meter } from "../../model/ports.ts";
import { DEVICE_SPACING_MS, DeviceTimes } from "./device-times.ts";
import { FileStore } from "./file-store.ts";
import { KeptMap } from "./kept-map.ts";
import { KeptNotes } from "./kept-notes.ts";
import { type AwaitedAnswer, LateNotices } from "./late-notices.ts";
import { PhoneBook } from "./phone-book.ts";
import { PhonePush } from "./phone-push.ts";
import { createFileIntake } from "./take-in-files.ts";
import { createTrustedExchanger, isSafeUrl } from "./trusted-exchanger.ts";

export const XIAOYI_PUSH_URL = "https://hag.cloud.huawei.com/open-ability-agent/v1/agent-webhook";
export const PUSH_DEVICES = ["session", "all"] as const;

/** How users who left before the answer came are told of it. */
export interface XiaoyiPushOptions {
  /** Of the webhook trigger that was made in the platform's console. */
  readonly apiId: string;
  /** The platform's address unless given; `http:` only on this machine. */
  readonly url?: string;
  /** Those of the entry unless given. */
  readonly ak?: string;
  readonly sk?: string;
  /** Those of the conversation, or all that ever spoke to the agent: right where they are all one user's. */
  readonly devices?: (typeof PUSH_DEVICES)[number];
  /** Between two notifications; 15 s unless given. To one device it is never less. */
  readonly spacingMs?: number;
}

/** What becomes of the files that users send. */
export interface XiaoyiFilesOptions {
  /** Of one file; 30 MiB unless given. */
  readonly maxBytes?: number;
  /** For fetching one; 60 s unless given. */
  readonly timeoutMs?: number;
  /** Hosts and addresses that may be asked for files although they are in a private network. */
  readonly allowHosts?: readonly string[];
  /** Of all files; 1 GiB unless given. */
  readonly quotaBytes?: number;
  /** How long they are kept; 7 days unless given. */
  readonly keepMs?: number;
}

/** An entry of either way. */
interface NoticedEntry {
  readonly dialect: string;
  readonly agent: string;
  readonly owner: string;
  readonly language: Language;
  readonly push?: XiaoyiPushOptions | undefined;
  readonly ak?: string | undefined;
  readonly sk?: string | undefined;
  /** Tasks whose readers are gone when the process is. */
  readonly unanswered?: Notes;
  /** Which devices are told where the options do not say. */
  readonly devices: (typeof PUSH_DEVICES)[number];
}

export interface PhoneServices {
  readonly intake: FileIntake;
  /** By task, the conversation that waits for its answer; of one entry. */
  unansweredOf(dialect: string, agent: string, owner: string): Notes;
  /** Undefined where the entry has no push. Throws a TypeError for one that makes no sense. */
  noticesFor(entry: NoticedEntry): Notices | undefined;
  /** Takes up what an earlier process left, for all entries so far. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export interface PhoneSurroundings {
  /** Where tasks are. */
  readonly store: string | undefined;
  readonly baseDirectory: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly uniqueId: () => string;
  readonly log: Log;
  readonly meter: Meter;
  /** Undefined before the server has started. */
  readonly serviceOf: (agent: string) => AgentService | undefined;
}

const MEBIBYTE = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1_000;
/** All of them are written whenever one is new. */
const MOST_USERS = 5_000;
const MOST_AWAITED = 5_000;
const MOST_TOLD = 1_000;
const LARGEST_ANSWER = 64 * 1024;

export function openPhoneServices(files: XiaoyiFilesOptions, around: PhoneSurroundings): PhoneServices {
  const { clock, log, meter } = around;
  const { folder, keptFile } = placesBeside(around);
  const { keepMs = 7 * DAY_MS, quotaBytes = 1024 * MEBIBYTE } = files;
  const store = new FileStore({ folder, quotaBytes, keepMs, clock, log });
  const book = new PhoneBook(new KeptMap(keptFile("phones"), MOST_USERS, log));
  const awaited = new KeptMap<AwaitedAnswer>(keptFile("awaited"), MOST_AWAITED, log);
  const devices = new DeviceTimes(new KeptMap(keptFile("told"), MOST_TOLD, log), log);
  const unanswered = new KeptNotes(keptFile("unanswered"), log);
  const notices: LateNotices[] = [];
  return {
    unansweredOf: (...entry) => unanswered.of(...entry),
    intake: createFileIntake({ fetch: fetchFor(files), store, log }),
    noticesFor(entry) {
      if (entry.push === undefined) return undefined;
      const { agent, dialect, language, owner, push, unanswered } = entry;
      const made = new LateNotices({
        scope: JSON.stringify([dialect, agent, owner, push.apiId]),
        dialect,
        owner,
        language,
        service: () => around.serviceOf(agent),
        everyDevice: (push.devices ?? entry.devices) === "all",
        push: pushFor(entry, push, devices, around),
        book,
        awaited,
        unanswered,
        clock,
        log,
        meter,
      });
      notices.push(made);
      return made;
    },
    async start() {
      const loaded = await Promise.allSettled([notices.length > 0 ? devices.load() : undefined]);
      const started = await Promise.allSettled([store.start(), ...notices.map((one) => one.start())]);
      for (const result of [...loaded, ...started]) {
        if (result.status === "rejected") {
          log.warn({ err: result.reason }, "What Xiaoyi's users left before could not be read.");
        }
      }
    },
    async stop() {
      await Promise.all([store.stop(), ...notices.map((one) => one.stop())]);
      await Promise.all([unanswered.settled(), devices.settled()]);
    },
  };
}

function fetchFor({ allowHosts = [], maxBytes = 30 * MEBIBYTE, timeoutMs = 60_000 }: XiaoyiFilesOptions) {
  return createGuardedFetch({ allow: allowHosts, maxBytes, timeoutMs, maxRedirects: 0 });
}

function pushFor(
  entry: NoticedEntry,
  push: XiaoyiPushOptions,
  devices: DeviceTimes,
  around: PhoneSurroundings,
): PhonePush {
  const { apiId, spacingMs = DEVICE_SPACING_MS, url = XIAOYI_PUSH_URL } = push;
  const accessKey = push.ak ?? entry.ak;
  const secretKey = push.sk ?? entry.sk;
  if (accessKey === undefined || secretKey === undefined) {
    throw new TypeError(`xiaoyi: the push of "${entry.agent}" needs ak and sk.`);
  }
  if (!isSafeUrl(url)) throw new TypeError(`xiaoyi: the push of "${entry.agent}" must go to an https address.`);
  const { clock, log, meter, random, uniqueId } = around;
  const exchanger = createTrustedExchanger(LARGEST_ANSWER);
  return new PhonePush({
    url,
    apiId,
    keys: { accessKey, secretKey },
    language: entry.language,
    spacingMs,
    devices,
    exchanger,
    clock,
    random,
    uniqueId,
    log,
    meter,
  });
}

const SQLITE = "sqlite:";

/** Beside the tasks, if these are in a file; where they end with the process, the rest does too. */
export function placesBeside({ baseDirectory, store }: Pick<PhoneSurroundings, "baseDirectory" | "store">) {
  if (store === undefined || store === "memory:") return { folder: undefined, keptFile: () => undefined };
  if (!store.startsWith(SQLITE)) {
    return { folder: resolve(baseDirectory, ".dragoman/files"), keptFile: () => undefined };
  }
  const file = resolve(baseDirectory, store.slice(SQLITE.length));
  return { folder: join(dirname(file), "files"), keptFile: (what: string) => `${file}.xiaoyi-${what}.json` };
}
