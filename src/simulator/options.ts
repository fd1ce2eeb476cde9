import type { Clock } from "../model/ports.ts";
import { DEFAULT_SKEW_MS, type RegisteredAgent } from "./authentication.ts";
import type { CloudOptions } from "./cloud/cloud-platform.ts";
import type { DeviceKind } from "./phone.ts";
import type { Random } from "./random.ts";
import { PUSH_SPACING_MS } from "./services/webhook.ts";
import type { Profile } from "./task/screen.ts";

/** Everything about the platform that differs between versions, is not known for sure, or is wanted otherwise. */
export interface PlatformTraits {
  /** How the app shows what comes. */
  readonly profile: Profile;
  /** How far the time of a signature may be off. */
  readonly skewMs: number;
  /** What becomes of an agent that speaks before it has introduced itself. */
  readonly beforeInit: "ignore" | "close";
  /** How long an agent may take to introduce itself. Assumed. */
  readonly initMs: number;
  readonly echoHeartbeat: boolean;
  readonly idleMs: number;
  /** What becomes of a second connection of one agent to one server. */
  readonly secondConnection: "replace" | "refuse";
  /** How many servers there are, and how traffic is spread over two. */
  readonly hosts: 1 | 2;
  readonly spread: "duplicate" | "partition";
  /** Silence after which the phone gives up. Assumed: no such time is published. */
  readonly silenceMs: number;
  /** Characters that the text of one frame may have. */
  readonly textLimit: number;
  /** Characters above which the connection is cut. Assumed, hence off. */
  readonly cutAbove: number;
  /** How long the phone waits for the answer to cancelling and clearing. Assumed. */
  readonly controlPatienceMs: number;
  readonly pushSpacingMs: number;
  readonly emptyPushAnswers: boolean;
}

export const DEFAULT_TRAITS: PlatformTraits = {
  profile: "phone-2026-04",
  skewMs: DEFAULT_SKEW_MS,
  beforeInit: "close",
  initMs: 10_000,
  echoHeartbeat: false,
  idleMs: Number.POSITIVE_INFINITY,
  secondConnection: "replace",
  hosts: 1,
  spread: "duplicate",
  silenceMs: 60_000,
  textLimit: 4000,
  cutAbove: Number.POSITIVE_INFINITY,
  controlPatienceMs: 10_000,
  pushSpacingMs: PUSH_SPACING_MS,
  emptyPushAnswers: false,
};

export interface SimulatorOptions extends Partial<PlatformTraits> {
  readonly clock: Clock;
  /** All ids and all chance come from here: the same source gives the same run. */
  readonly random: Random;
  /** Loopback unless given: what is said here is not encrypted. */
  readonly address?: string;
  /** A free one unless given. A second server takes the one after it. */
  readonly port?: number;
  /** The first one is the phones'. One is made up if none is given. */
  readonly agents?: readonly [RegisteredAgent, ...RegisteredAgent[]];
  /** What the first phone is. */
  readonly device?: DeviceKind;
  /** Call the agent at an address instead of waiting for it to dial. */
  readonly http?: CloudOptions;
}
