import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RegistryEntry } from "../entry.ts";
import { cardOf, entryOf, skillOf } from "../testing/fixtures.ts";
import { type Filter, NO_FILTER, ORDERS, type Order } from "./listed.ts";
import { SearchIndex } from "./search-index.ts";

const EVERYONE = () => true;
const FIRST: Order = { field: "displayName", descending: false };

function indexOf(...entries: readonly RegistryEntry[]): SearchIndex {
  const index = new SearchIndex();
  for (const entry of entries) index.put(entry);
  return index;
}

function namesOf(index: SearchIndex, text: string, filter: Filter = NO_FILTER): readonly string[] | undefined {
  return index.search(text, filter, EVERYONE, { size: 100 })?.items.map(({ listed }) => listed.displayName);
}

const weather = entryOf(
  "w",
  cardOf("Weather", {
    description: "Forecasts for every city.",
    skills: [skillOf("get_forecast", { tags: ["weather"], examples: ["Will it rain in Rome?"] })],
  }),
);
const travel = entryOf(
  "t",
  cardOf("Travel planner", {
    description: "Books flights and hotels, and looks at the weather before.",
    skills: [skillOf("bookFlight", { tags: ["travel", "booking"] })],
  }),
);
const chinese = entryOf(
  "c",
  cardOf("天气助手", {
    description: "查询全国各地的天气预报和空气质量。",
    skills: [skillOf("tianqi", { name: "天气查询", tags: ["天气"], examples: ["北京明天会下雨吗"] })],
  }),
);
const translator = entryOf(
  "x",
  cardOf("翻译专家", { description: "中文与英文互译。", skills: [skillOf("fanyi", { tags: ["翻译"] })] }),
);

describe("a search by words", () => {
  const index = indexOf(weather, travel, chinese, translator);

  it.each([
    ["weather", ["Weather", "Travel planner"]],
    ["WEATHER forecasts", ["Weather", "Travel planner"]],
    ["forecasting", ["Weather"]],
    ["book a flight", ["Travel planner"]],
    ["find me a flight booking agent", ["Travel planner"]],
    ["hotel", ["Travel planner"]],
    ["rain rome", ["Weather"]],
    ["bookflight", []],
    ["天气", ["天气助手"]],
    ["天气预报", ["天气助手"]],
    ["明天下雨", ["天气助手"]],
    ["翻译", ["翻译专家"]],
    ["译", ["翻译专家"]],
    ["quantum", []],
  ])("%s", (text, names) => {
    expect(namesOf(index, text)).toEqual(names);
  });

  it("has no answer to a text without words", () => {
    expect(namesOf(index, "?! …")).toBeUndefined();
    expect(namesOf(index, "the of a")).toBeUndefined();
  });

  it("prefers an agent whose name has the word to one that only mentions it", () => {
    const [first, second] = index.search("weather", NO_FILTER, EVERYONE, { size: 2 })?.items ?? [];
    expect(first?.score).toBeGreaterThan(second?.score ?? 1);
    expect(first?.score).toBeLessThanOrEqual(1);
  });

  it("shows an agent that has no name after all that have one", () => {
    const nameless = entryOf("a", cardOf("unnamed agent", { description: "Weather weather weather." }));
    const index = indexOf(nameless, weather);
    expect(namesOf(index, "weather")).toEqual(["Weather", "unnamed agent"]);
    const { items } = index.list(NO_FILTER, EVERYONE, FIRST, 10, undefined);
    expect(items.map(({ displayName }) => displayName)).toEqual(["Weather", "unnamed agent"]);
  });

  it("finds what was changed by its new words only", () => {
    const changing = indexOf(weather);
    changing.put({ ...weather, card: cardOf("Chess"), updatedAt: 2_000 });
    expect(namesOf(changing, "weather")).toEqual([]);
    expect(namesOf(changing, "chess")).toEqual(["Chess"]);
    expect(changing.size).toBe(1);
  });
});

describe("filters", () => {
  const index = indexOf(
    { ...weather, health: "up" },
    { ...travel, health: "stale" },
    { ...chinese, createdAt: 5_000, updatedAt: 6_000 },
  );
  const listOf = (filter: Filter) =>
    index.list(filter, EVERYONE, FIRST, 100, undefined).items.map(({ displayName }) => displayName);
  const by = (field: Filter["terms"][number]["field"], ...values: readonly string[]): Filter => ({
    terms: [{ field, values }],
  });

  it.each([
    [by("skill", "get_forecast"), ["Weather"]],
    [by("skill", "GET_FORECAST"), ["Weather"]],
    [by("skill", "get_forecast", "tianqi"), ["Weather", "天气助手"]],
    [by("tag", "booking"), ["Travel planner"]],
    [by("dialect", "a2a-v1"), ["Travel planner", "Weather", "天气助手"]],
    [by("dialect", "a2a-v03"), []],
    [by("binding", "JSONRPC"), ["Travel planner", "Weather", "天气助手"]],
    [by("mode", "text/plain"), ["Travel planner", "Weather", "天气助手"]],
    [by("mode", "image/png"), []],
    [by("health", "up"), ["Weather"]],
    [by("health", "up", "stale"), ["Travel planner", "Weather"]],
    [by("publisher", "weather.example.com"), ["Weather"]],
    [by("type", "application/a2a-agent-card+json"), ["Travel planner", "Weather", "天气助手"]],
    [by("type", "application/mcp-server-card+json"), []],
    [by("displayName", "weather"), ["Weather"]],
    [{ terms: [], createdAfter: 4_000 }, ["天气助手"]],
    [{ terms: [], updatedAfter: 6_000 }, []],
    [{ terms: [...by("tag", "weather").terms, ...by("health", "stale").terms] }, []],
    [{ terms: [...by("tag", "weather", "travel").terms, ...by("skill", "bookFlight").terms] }, ["Travel planner"]],
  ])("%j", (filter, names) => {
    expect(listOf(filter)).toEqual(names);
    expect(namesOf(index, "weather flights 天气", filter)?.toSorted()).toEqual(names.toSorted());
  });
});

describe("pages", () => {
  const arbitraryEntries = fc.uniqueArray(
    fc.record({
      id: fc.integer({ min: 0, max: 60 }).map((number) => `id${number}`),
      name: fc.constantFrom("alpha", "beta", "gamma beta", "Alpha beta"),
      createdAt: fc.integer({ min: 0, max: 5 }),
      updatedAt: fc.integer({ min: 0, max: 5 }),
      tag: fc.constantFrom("one", "two"),
    }),
    { selector: ({ id }) => id, maxLength: 40 },
  );

  it("of a list show every entry once, in order, whatever their size", () => {
    fc.assert(
      fc.property(
        arbitraryEntries,
        fc.integer({ min: 1, max: 7 }),
        fc.constantFrom(...ORDERS),
        fc.boolean(),
        fc.constantFrom(NO_FILTER, { terms: [{ field: "tag", values: ["one"] } as const] }),
        (given, size, field, descending, filter) => {
          const index = indexOf(
            ...given.map(({ id, name, tag, ...times }) =>
              entryOf(id, cardOf(name, { skills: [skillOf("s", { tags: [tag] })] }), times),
            ),
          );
          const order = { field, descending };
          const all = index.list(filter, EVERYONE, order, 100, undefined).items;
          const expected = given.filter(({ tag }) => filter.terms.length === 0 || tag === "one").length;
          expect(new Set(all.map(({ id }) => id)).size).toBe(expected);
          const paged: string[] = [];
          for (let after: (typeof all)[number] | undefined, more = true; more; ) {
            const page = index.list(filter, EVERYONE, order, size, after);
            paged.push(...page.items.map(({ id }) => id));
            after = page.items.at(-1);
            more = page.hasMore;
            expect(page.items.length).toBeLessThanOrEqual(size);
          }
          expect(paged).toEqual(all.map(({ id }) => id));
        },
      ),
    );
  });

  it("of a search show every match once, best first", () => {
    fc.assert(
      fc.property(arbitraryEntries, fc.integer({ min: 1, max: 7 }), (given, size) => {
        const index = indexOf(...given.map(({ id, name }) => entryOf(id, cardOf(name))));
        const search = (after?: { score: number; id: string }, most = size) =>
          index.search("beta", NO_FILTER, EVERYONE, { size: most, after }) ?? { items: [], hasMore: false };
        const all = search(undefined, 100).items;
        const scores = all.map(({ score }) => score);
        expect(scores).toEqual(scores.toSorted((one, other) => other - one));
        const paged: string[] = [];
        for (let after: { score: number; id: string } | undefined, more = true; more; ) {
          const page = search(after);
          paged.push(...page.items.map(({ listed }) => listed.id));
          const last = page.items.at(-1);
          after = last && { score: last.score, id: last.listed.id };
          more = page.hasMore;
        }
        expect(paged).toEqual(all.map(({ listed }) => listed.id));
      }),
    );
  });
});

it("stays the same after any order of additions, changes and removals, also when it was compacted", () => {
  const words = ["red", "green", "blue"];
  const command = fc.record({ id: fc.integer({ min: 0, max: 12 }), word: fc.constantFrom(...words, undefined) });
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      const index = new SearchIndex();
      // Enough removals for a compaction.
      for (let at = 0; at < 1_200; at++) index.put(entryOf(`old${at}`, cardOf("old")));
      for (let at = 0; at < 1_200; at++) index.remove(`old${at}`);
      const model = new Map<string, string>();
      let time = 1;
      for (const { id, word } of commands) {
        if (word === undefined) {
          index.remove(`id${id}`);
          model.delete(`id${id}`);
        } else {
          time++;
          index.put(entryOf(`id${id}`, cardOf(word), { updatedAt: time }));
          model.set(`id${id}`, word);
        }
      }
      expect(index.size).toBe(model.size);
      for (const word of words) {
        const expected = [...model].flatMap(([id, own]) => (own === word ? [id] : [])).sort();
        const found = index.search(word, NO_FILTER, EVERYONE, { size: 100 })?.items.map(({ listed }) => listed.id);
        expect(found?.toSorted()).toEqual(expected);
        const [first] = expected;
        if (first === undefined) continue;
        // Cards of the same name have the same identifier here.
        const filter = { terms: [{ field: "identifier", values: [index.get(first)?.identifier ?? ""] } as const] };
        const order = { field: "displayName", descending: false } as const;
        const identified = index.list(filter, EVERYONE, order, 100, undefined).items.map(({ id }) => id);
        expect(identified.toSorted()).toEqual(expected);
      }
    }),
    { numRuns: 20 },
  );
});
