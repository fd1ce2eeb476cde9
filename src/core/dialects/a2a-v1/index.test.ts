import { expect, it } from "vitest";
import { a2aV1 } from "./index.ts";

it("can say everything there is to say; ids of tasks are the server's", () => {
  const { chosenIds, operations, parts, ...rest } = a2aV1.can;
  expect(chosenIds).toBe(false);
  expect([...Object.values(operations), ...Object.values(parts), ...Object.values(rest)]).not.toContain(false);
  expect(Object.keys(operations)).toHaveLength(11);
});

it("[BIND-EQUIV-001] serves and calls the same bindings, all in version 1.0", () => {
  expect(a2aV1.name).toBe("a2a-v1");
  const { jsonRpc, http = [], rpc } = a2aV1.serving;
  expect([jsonRpc?.versions, ...http.map(({ version }) => version), rpc?.version]).toEqual([["1.0"], "1.0", "1.0"]);
  const called = a2aV1.calling.map((calling) => (calling.carrier !== "link" ? [calling.binding, calling.version] : []));
  expect(called).toEqual([
    ["JSONRPC", "1.0"],
    ["HTTP+JSON", "1.0"],
    ["GRPC", "1.0"],
  ]);
});
