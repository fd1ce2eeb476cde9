import type { PlatformTraits } from "../simulator/index.ts";
import { parseDuration } from "./duration.ts";
import { usage } from "./errors.ts";

type Traits = Partial<PlatformTraits>;

interface Trait {
  readonly values: string;
  readonly read: (text: string) => Traits | undefined;
}

function choice<N extends keyof PlatformTraits>(name: N, values: readonly PlatformTraits[N][]): Trait {
  return {
    values: values.join("|"),
    read: (text) => {
      const value = values.find((known) => String(known) === text);
      return value === undefined ? undefined : { [name]: value };
    },
  };
}

function duration(name: "idleMs" | "initMs" | "skewMs"): Trait {
  return {
    values: "DURATION",
    read: (text) => {
      const milliseconds = parseDuration(text);
      return milliseconds === undefined ? undefined : { [name]: milliseconds };
    },
  };
}

/** What is not known of the platform, differs between its versions, or should be tried otherwise. */
const TRAITS: Readonly<Record<string, Trait>> = {
  hosts: choice("hosts", [1, 2]),
  spread: choice("spread", ["duplicate", "partition"]),
  second: choice("secondConnection", ["replace", "refuse"]),
  early: choice("beforeInit", ["close", "ignore"]),
  echo: choice("echoHeartbeat", [false, true]),
  init: duration("initMs"),
  idle: duration("idleMs"),
  skew: duration("skewMs"),
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
  if (read === undefined) throw usage(`--trait must be one of ${TRAIT_LIST}, not "${given}".`);
  return read;
}
