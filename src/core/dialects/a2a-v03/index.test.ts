import { expect, it } from "vitest";
import { a2aV03 } from "./index.ts";

it("can say everything but lists of tasks; their ids are the server's", () => {
  const { chosenIds, operations, parts, ...rest } = a2aV03.can;
  expect(chosenIds).toBe(false);
  const { list, ...others } = operations;
  expect(list).toBe(false);
  expect([...Object.values(others), ...Object.values(parts), ...Object.values(rest)]).not.toContain(false);
});

it("serves and calls the same bindings, all in version 0.3", () => {
  expect(a2aV03.name).toBe("a2a-v03");
  const { jsonRpc, http = [], rpc, cards = [] } = a2aV03.serving;
  expect(jsonRpc?.versions).toEqual(["0.3", "0.2"]);
  expect(http.map(({ version, prefix }) => [version, prefix])).toEqual([
    ["0.3", "rest/v1"],
    ["0.2", "agent/authenticatedExtendedCard"],
  ]);
  expect([rpc?.version, rpc?.service]).toEqual(["0.3", "a2a.v1.A2AService"]);
  expect(cards.map(({ path, version }) => [path, version])).toEqual([
    ["/.well-known/agent-card.json", "0.3"],
    ["/.well-known/agent.json", "0.2"],
  ]);
  const called = a2aV03.calling.map((calling) =>
    calling.carrier !== "link" ? [calling.binding, calling.version] : [],
  );
  expect(called).toEqual([
    ["JSONRPC", "0.3"],
    ["HTTP+JSON", "0.3"],
    ["GRPC", "0.3"],
  ]);
});

it("declares every loss once", () => {
  const told = a2aV03.losses.map(({ kind, what, reason, direction, bindings = [] }) =>
    [kind, what, reason, direction, ...bindings].join(" "),
  );
  expect(new Set(told).size).toBe(told.length);
  for (const { what, reason } of a2aV03.losses) expect([what, reason]).not.toContain("");
});
