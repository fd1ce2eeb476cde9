import type { CardScene } from "./card-scene.ts";
import type { Binding } from "./requirement.ts";
import type { RequirementId } from "./requirements.ts";
import type { Scene } from "./scene.ts";

interface CheckBase {
  /** Unique, in kebab-case: people ask for a check by it. */
  readonly name: string;
  /** The requirements that are shown to hold when it passes. */
  readonly shows: readonly RequirementId[];
}

/** Something to try on one interface. Returns when the server does as it should; see `outcome.ts` for the rest. */
export interface InterfaceCheck extends CheckBase {
  /** Absent: in every binding. */
  readonly bindings?: readonly Binding[];
  readonly run: (scene: Scene) => Promise<void>;
}

/** Something about the card, without a call. */
export interface CardCheck extends CheckBase {
  readonly run: (scene: CardScene) => Promise<void>;
}

/** Something that compares the interfaces of one version. */
export interface CrossCheck extends CheckBase {
  readonly run: (scenes: readonly Scene[]) => Promise<void>;
}

export type Check = InterfaceCheck | CardCheck | CrossCheck;
