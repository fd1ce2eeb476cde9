import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { EXCEPTIONS } from "./exceptions.ts";
import { type Matrix, printMatrix, renderMatrix, verdictOf } from "./matrix.ts";
import { PAIRS, SDK_V1, SDK_V03 } from "./pairs.ts";
import { SCENARIOS } from "./scenarios.ts";

const kept = JSON.parse(await readFile(fileURLToPath(new URL("./matrix.json", import.meta.url)), "utf8")) as Matrix;

const SAMPLE: Matrix = {
  columns: [
    { name: "a", client: "@a2a-js/sdk 1", server: "dragoman", binding: "JSONRPC", version: "1.0" },
    { name: "b", client: "dragoman", server: "@a2a-js/sdk 2", binding: "GRPC", version: "0.3" },
    { name: "c", client: "dragoman", server: "@a2a-js/sdk 3", binding: "GRPC", version: "0.3" },
  ],
  rows: [
    { name: "one", operation: "send", shows: "It sends.", cells: { a: "works", b: "peer's limit: tired", c: "works" } },
    {
      name: "two",
      operation: "list",
      shows: "",
      cells: { a: "not in this dialect: no word", b: "peer's limit: tired" },
    },
    { name: "three", operation: "get", shows: "", cells: { a: "FAILS: see", b: "works", c: "peer's limit: other" } },
  ],
};

describe("the matrix that is kept", () => {
  it("has a verdict for every scenario with every pair, and none that fails", () => {
    expect(kept.rows.map(({ name }) => name)).toEqual(SCENARIOS.map(({ name }) => name));
    const names = PAIRS.map(({ name }) => name);
    for (const { cells } of kept.rows) {
      expect(Object.keys(cells)).toEqual(names);
      expect(Object.values(cells).map(verdictOf)).not.toContain("FAILS");
    }
  });

  it("knows no scenario or pair twice", () => {
    expect(new Set(SCENARIOS.map(({ name }) => name)).size).toBe(SCENARIOS.length);
    expect(new Set(PAIRS.map(({ name }) => name)).size).toBe(PAIRS.length);
  });

  it("names the versions that are installed", async () => {
    for (const [name, folder] of [
      [SDK_V1, "@a2a-js/sdk"],
      [SDK_V03, "a2a-js-sdk-0.3"],
    ]) {
      const manifest = new URL(`../../node_modules/${folder}/package.json`, import.meta.url);
      const { version } = JSON.parse(await readFile(fileURLToPath(manifest), "utf8"));
      expect(name).toBe(`@a2a-js/sdk ${version}`);
    }
  });

  it("has no exception that excuses nothing", () => {
    for (const { applies, cell, scenarios } of EXCEPTIONS) {
      expect(
        SCENARIOS.map(({ name }) => name),
        cell,
      ).toEqual(expect.arrayContaining([...scenarios]));
      expect(PAIRS.some(applies), cell).toBe(true);
    }
  });
});

describe("a matrix shown", () => {
  it("is a table per side, with each reason once and numbered", () => {
    const page = renderMatrix(SAMPLE);
    expect(page).toContain(
      "## Other clients, our server\n\n|  | sdk 1<br>1.0 JSONRPC |\n| --- | --- |\n| one | ✓ |\n| two | – 1 |\n| three | ✗ 2 |",
    );
    expect(page).toContain("| one | send | It sends. |");
    expect(page).toContain("|  | sdk 2<br>0.3 GRPC | sdk 3<br>0.3 GRPC |");
    expect(page).toContain(
      "| one | △ 1 | ✓ |\n| two | △ 1 | ? |\n| three | ✓ | △ 2 |\n\n1. peer's limit: tired\n2. peer's limit: other\n",
    );
  });

  it("fits a terminal", () => {
    expect(printMatrix(SAMPLE)).toContain(
      "one   △ 1  ✓\ntwo   △ 1  ?\nthree ✓    △ 2\n  1  peer's limit: tired\n  2  peer's limit: other\n",
    );
  });

  it("leaves out what was not tried", () => {
    const untried = { ...SAMPLE, rows: SAMPLE.rows.map((row) => ({ ...row, cells: { a: "works" as const } })) };
    expect(renderMatrix(untried)).not.toContain("Our client");
    expect(printMatrix(untried)).not.toContain("Our client");
  });
});
