import type { Clock } from "../../../core/model/ports.ts";
import { DEFAULT_SKEW_MS, type RegisteredAgent } from "./authentication.ts";
import type { CloudOptions } from "./cloud/cloud-platform.ts";
import type { DeviceKind } from "./phone.ts";
import type { Random } from "./random.ts";
import { PUSH_SPACING_MS } from "./services/webhook.ts";
import type { Profile } from "./task/screen.ts";

/** Properties of the platform that differ between versions, are not known for certain, or are configurable. */
export interface PlatformTraits {
  readonly profile: Profile;
  readonly skewMs: number;
  /** How to treat an agent that sends frames before its init frame. */
  readonly beforeInit: "ignore" | "close";
  /** How long an agent may take to send its init frame. Assumed. */
  readonly initMs: number;
  /** The platform does not guarantee an echo; agents must not wait for it. */
  readonly echoHeartbeat: boolean;
  /** Closes connections that were idle for this long. */
  readonly idleMs: number;
  /** How to treat a second connection of an agent to the same server. */
  readonly secondConnection: "replace" | "refuse";
  /** Number of servers, and how traffic is distributed over two. */
  readonly hosts: 1 | 2;
  readonly spread: "duplicate" | "partition";
  /** Silence after which the phone gives up. Assumed: the actual time is not published. */
  readonly silenceMs: number;
  readonly textLimit: number;
  /** Characters in one frame above which the connection is cut. Assumed, therefore off. */
  readonly cutAbove: number;
  /** How long the phone waits for the answer to cancel and clear. Assumed. */
  readonly controlPatienceMs: number;
  readonly pushSpacingMs: number;
  /** Some responses of the platform have no body. */
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
  /** Source of all ids and random choices: the same source gives the same run. */
  readonly random: Random;
  /** Default: loopback, since the traffic is not encrypted. */
  readonly address?: string;
  /** Default: a free port. A second server uses the next one. */
  readonly port?: number;
  /** Phones use the first one. Default: a generated agent. */
  readonly agents?: readonly [RegisteredAgent, ...RegisteredAgent[]];
  readonly device?: DeviceKind;
  /** Call the agent at an address instead of waiting for it to connect. */
  readonly http?: CloudOptions;
}
