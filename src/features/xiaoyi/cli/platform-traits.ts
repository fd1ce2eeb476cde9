import { usageError } from "../../../core/cli/errors.ts";
import { parseDuration } from "../../../core/model/duration.ts";
import type { PlatformTraits } from "../simulator/index.ts";

type Traits = Partial<PlatformTraits>;

interface Trait {
  readonly values: string;
  readonly read: (text: string) => Traits | undefined;
}

function choiceTrait<N extends keyof PlatformTraits>(name: N, values: readonly PlatformTraits[N][]): Trait {
  return {
    values: values.join("|"),
    read: (text) => {
      const value = values.find((known) => String(known) === text);
      return value === undefined ? undefined : { [name]: value };
    },
  };
}

function durationTrait(name: "idleMs" | "initMs" | "skewMs"): Trait {
  return {
    values: "DURATION",
    read: (text) => {
      const milliseconds = parseDuration(text, { typed: true });
      return milliseconds === undefined ? undefined : { [name]: milliseconds };
    },
  };
}

/** Behaviour of the platform that is unknown, differs between its versions, or should be tested in variants. */
const TRAITS: Readonly<Record<string, Trait>> = {
  hosts: choiceTrait("hosts", [1, 2]),
  spread: choiceTrait("spread", ["duplicate", "partition"]),
  second: choiceTrait("secondConnection", ["replace", "refuse"]),
  early: choiceTrait("beforeInit", ["close", "ignore"]),
  echo: choiceTrait("echoHeartbeat", [false, true]),
  init: durationTrait("initMs"),
  idle: durationTrait("idleMs"),
  skew: durationTrait("skewMs"),
  cut: {
    values: "CHARACTERS",
    read: (text) => (/^\d{1,9}$/.test(text) ? { cutAbove: Number(text) } : undefined),
  },
};

export const TRAIT_LIST = Object.entries(TRAITS)
  .map(([name, { values }]) => `${name}=${values}`)
  .join(", ");

export function readTraits(given: readonly string[]): Traits {
  return Object.assign({}, ...given.map(readTrait));
}

function readTrait(given: string): Traits {
  const at = given.indexOf("=");
  const name = given.slice(0, Math.max(0, at));
  const read = Object.hasOwn(TRAITS, name) ? TRAITS[name]?.read(given.slice(at + 1)) : undefined;
  if (read === undefined) throw usageError(`--trait must be one of ${TRAIT_LIST}, not "${given}".`);
  return read;
}
