import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { EXCEPTIONS } from "./exceptions.ts";
import { type Cell, type Matrix, printMatrix } from "./matrix.ts";
import { PAIRS, type Pair } from "./pairs.ts";
import type { Scenario } from "./scenario.ts";
import { SCENARIOS } from "./scenarios.ts";
import { openStage, type Stage } from "./stage.ts";

/** Nothing here takes a second; what waits for ever is not to wait for long. */

const seen = new Map<string, Map<string, Cell>>(SCENARIOS.map(({ name }) => [name, new Map()]));

beforeAll(() => {
  // The SDKs write what they think of each refusal to the console.
  for (const method of ["error", "warn", "info", "log"] as const)
    vi.spyOn(console, method).mockImplementation(() => {});
});

for (const pair of PAIRS) {
  describe(pair.name, () => {
    const stages = new Map<string, Promise<Stage>>();
    const stageFor = ({ without }: Scenario) => {
      const key = without ?? "";
      const stage = stages.get(key) ?? openStage(pair, without);
      stages.set(key, stage);
      return stage;
    };

    afterAll(async () => {
      for (const stage of stages.values()) await (await stage).close();
    });

    for (const scenario of SCENARIOS) {
      it(scenario.name, async () => {
        const cells = seen.get(scenario.name);
        cells?.set(pair.name, "FAILS: see the test");
        cells?.set(pair.name, await play(pair, scenario, await stageFor(scenario)));
      });
    }
  });
}

it("matrix.json holds what was seen; with --update it is written again", async () => {
  await expect(`${JSON.stringify(matrix(), undefined, 2)}\n`).toMatchFileSnapshot("./matrix.json");
});

afterAll(() => {
  process.stdout.write(printMatrix(matrix()));
});

/** Where an exception is declared, the scenario has to fail, and in the way the exception says. */
async function play(pair: Pair, scenario: Scenario, { driver, gates }: Stage): Promise<Cell> {
  const declared = EXCEPTIONS.filter(({ applies, scenarios }) => scenarios.includes(scenario.name) && applies(pair));
  expect(declared.length).toBeLessThanOrEqual(1);
  const [exception] = declared;
  if (exception === undefined) {
    await scenario.run(driver, gates);
    return "works";
  }
  const failure = await scenario.run(driver, gates).then(() => "It works.", evidenceOf);
  expect(failure).toMatch(exception.fails);
  return exception.cell;
}

/** What was found instead of what was expected; without that, the words of the error. */
function evidenceOf(error: unknown): string {
  if (typeof error !== "object" || error === null) return String(error);
  if (!("actual" in error) || error.actual === undefined)
    return `${"code" in error ? error.code : ""} ${String(error)}`;
  return typeof error.actual === "string" ? error.actual : JSON.stringify(error.actual);
}

function matrix(): Matrix {
  return {
    columns: PAIRS.map(({ binding, client, name, server, version }) => ({ name, client, server, binding, version })),
    rows: SCENARIOS.map(({ name, operation, shows }) => ({
      name,
      operation,
      shows,
      cells: Object.fromEntries(PAIRS.flatMap((pair) => cellOf(name, pair.name))),
    })),
  };
}

function cellOf(scenario: string, pair: string): [string, Cell][] {
  const cell = seen.get(scenario)?.get(pair);
  return cell === undefined ? [] : [[pair, cell]];
}
