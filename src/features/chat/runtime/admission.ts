/** Who may give the agent work, and how often. */

import type { Clock } from "../../../core/model/ports.ts";
import type { PostSender } from "../../../core/wire/channel.ts";

interface Window {
  readonly count: number;
  readonly ms: number;
}

const MINUTE_MS = 60_000;
const DEFAULT_RATE = { messages: 10, perMs: 10_000 };
/**
 * Unmarked messages of one bot that are answered without a pause of this length between them: two agents that chat with
 * each other stop here, however slow they are.
 */
const BOT_TURNS: Window = { count: 8, ms: 10 * MINUTE_MS };
/** The same for participants that may be people, where the network does not tell. */
const TURNS: Window = { count: 40, ms: 5 * MINUTE_MS };
/** Those that come so soon after the answer to the one before are likely to be a program's. */
const QUICK_TURNS: Window = { count: 8, ms: MINUTE_MS };
const QUICK_MS = 10_000;
/** Refusals of one unknown peer, and of all of them. */
const REFUSALS: Window = { count: 1, ms: 10 * MINUTE_MS };
const ALL_REFUSALS: Window = { count: 10, ms: MINUTE_MS };
/** Cards for all unknown peers: on some networks one participant can take any number of names. */
const ALL_CARDS: Window = { count: 20, ms: MINUTE_MS };
const MAX_PEERS = 10_000;

/** `notice`: it is not served, and its sender is notified once. */
type Verdict = "serve" | "ignore" | { readonly notice: string; readonly forBots?: boolean };

interface AdmissionOptions {
  readonly allowPeers: readonly string[];
  readonly allowBots: boolean | "mentions";
  /** Messages of one peer that are served. */
  readonly rate?: { readonly messages: number; readonly perMs: number };
  readonly clock: Clock;
}

/** A message as far as admission needs it. */
interface AdmissionRequest {
  readonly sender: PostSender;
  /** It is for the agent beyond doubt: a direct message, a mention, a reply, or `to=`. */
  readonly addressed: boolean;
  readonly kind: "discover" | "work" | "chat";
}

interface SenderRecord {
  messages: number[];
  refusals: number[];
  /** It was notified of the rate, and has not been served since. */
  notified: boolean;
  /** Its messages in plain language since the last pause. */
  turns: { count: number; quick: number; at: number; stopped: boolean };
  /** When its plain chat was answered, if it has not written since. */
  answeredAt: number | undefined;
  /** It has sent a marker, so it is an agent. */
  isAgent: boolean;
}

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #peers = new Map<string, SenderRecord>();
  readonly #rate: Window;
  /** When unknown participants were answered, all together. */
  readonly #unknown: Record<"refusals" | "cards", number[]> = { refusals: [], cards: [] };

  constructor(options: AdmissionOptions) {
    this.#options = options;
    const { messages, perMs } = options.rate ?? DEFAULT_RATE;
    this.#rate = { count: messages, ms: perMs };
  }

  /** Notes that a participant sends markers. */
  noteAgent(sender: PostSender): void {
    this.#peer(sender.id).isAgent = true;
  }

  /** Notes that its plain chat was answered. */
  noteAnswer(peer: string): void {
    this.#peer(peer).answeredAt = this.#options.clock.now();
  }

  decide({ addressed, kind, sender }: AdmissionRequest): Verdict {
    const { allowBots } = this.#options;
    if (sender.bot && (allowBots === false || (allowBots === "mentions" && !addressed))) return "ignore";
    const peer = this.#peer(sender.id);
    const isAllowed = this.#isAllowed(sender);
    if (kind !== "discover" && !isAllowed) return this.#refuse(peer);
    const loop = kind === "chat" ? this.#findLoop(peer, sender.bot || peer.isAgent) : undefined;
    if (loop !== undefined) return loop;
    if (!isAllowed && !this.#hasRoom(this.#unknown, "cards", ALL_CARDS)) return "ignore";
    if (!this.#take(peer, "messages", this.#rate)) return this.#limit(peer, this.#rate);
    if (!isAllowed) this.#take(this.#unknown, "cards", ALL_CARDS);
    peer.notified = false;
    return "serve";
  }

  /** After the notice there is no answer before a pause, so that a program has nothing to answer either. */
  #findLoop(peer: SenderRecord, isAgent: boolean): Verdict | undefined {
    const now = this.#options.clock.now();
    const { answeredAt, turns } = peer;
    const limit = isAgent ? BOT_TURNS : TURNS;
    const pause = now - turns.at;
    if (pause >= (turns.quick > QUICK_TURNS.count ? QUICK_TURNS.ms : limit.ms)) {
      Object.assign(turns, { count: 0, quick: 0, stopped: false });
    }
    if (answeredAt !== undefined) turns.quick = now - answeredAt < QUICK_MS ? turns.quick + 1 : 0;
    turns.count++;
    turns.at = now;
    peer.answeredAt = undefined;
    if (turns.stopped) return "ignore";
    const reached = turns.quick > QUICK_TURNS.count ? QUICK_TURNS : turns.count > limit.count ? limit : undefined;
    if (reached === undefined) return undefined;
    turns.stopped = true;
    const notice = `I have answered ${reached.count} messages without a pause and stop now, in case two programs talk to each other. I answer again after ${reached.ms / MINUTE_MS} min of silence.`;
    return { notice, forBots: true };
  }

  #limit(peer: SenderRecord, { count, ms }: Window): Verdict {
    if (peer.notified) return "ignore";
    peer.notified = true;
    const time = ms < MINUTE_MS ? `${ms / 1_000} s` : `${ms / MINUTE_MS} min`;
    return { notice: `Too many messages: ${count} in ${time} are served. Please wait.` };
  }

  /** Where the network authenticates no one, a name is as good as an id; elsewhere anyone may take it. */
  #isAllowed({ id, name, verified }: PostSender): boolean {
    const { allowPeers } = this.#options;
    return allowPeers.some((allowed) => allowed === "*" || allowed === id || (!verified && allowed === name));
  }

  #refuse(peer: SenderRecord): Verdict {
    if (!this.#hasRoom(this.#unknown, "refusals", ALL_REFUSALS)) return "ignore";
    if (!this.#take(peer, "refusals", REFUSALS)) return "ignore";
    this.#take(this.#unknown, "refusals", ALL_REFUSALS);
    return { notice: "I only work for participants that my owner has allowed." };
  }

  #hasRoom<K extends string>(times: Record<K, number[]>, kind: K, { count, ms }: Window): boolean {
    const oldest = this.#options.clock.now() - ms;
    times[kind] = times[kind].filter((at) => at > oldest);
    return times[kind].length < count;
  }

  #take<K extends string>(times: Record<K, number[]>, kind: K, window: Window): boolean {
    const isRoom = this.#hasRoom(times, kind, window);
    if (isRoom) times[kind].push(this.#options.clock.now());
    return isRoom;
  }

  #peer(id: string): SenderRecord {
    const known = this.#peers.get(id) ?? {
      messages: [],
      refusals: [],
      notified: false,
      turns: { count: 0, quick: 0, at: Number.NEGATIVE_INFINITY, stopped: false },
      answeredAt: undefined,
      isAgent: false,
    };
    // The newest last: the one that was silent for longest is forgotten.
    this.#peers.delete(id);
    this.#peers.set(id, known);
    const [oldest] = this.#peers.keys();
    if (this.#peers.size > MAX_PEERS && oldest !== undefined) this.#peers.delete(oldest);
    return known;
  }
}
