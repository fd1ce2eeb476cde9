import { parseArgs } from "node:util";

export interface Options {
  /** Names of scenarios to run; default: all. */
  only?: string[];
  rounds: number;
  quick: boolean;
  help: boolean;
}

export const usage = `Usage: npm run bench -- [options]

  --only <names>   run only these scenarios, separated by commas
  --rounds <n>     rounds per scenario (default 5)
  --quick          small sizes and one round, to see that everything runs; targets are shown but
                   not enforced, and no results are written (about a minute)
  --help           this text and what each scenario compares`;

export class UsageError extends Error {}

export function parseOptions(argv: readonly string[], known: readonly string[]): Options {
  const values = read(argv);
  const quick = values.quick ?? false;
  const rounds = values.rounds === undefined ? (quick ? 1 : 5) : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1) throw new UsageError("--rounds takes a whole number from 1");
  const only = values.only?.split(",").map((name) => name.trim());
  for (const name of only ?? []) {
    if (!known.includes(name)) throw new UsageError(`no scenario "${name}"; there are: ${known.join(", ")}`);
  }
  return { rounds, quick, help: values.help ?? false, ...(only ? { only } : {}) };
}

function read(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      options: {
        only: { type: "string" },
        rounds: { type: "string" },
        quick: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}
