import { expect, it } from "vitest";
import { ProtocolError } from "../../../../core/model/errors.ts";
import { SILENT_LOG } from "../../../../core/model/ports.ts";
import { RefusalLog } from "./access.ts";

it("logs each reason once per agent, and little of what the peer sent", () => {
  const told: unknown[] = [];
  const refusals = new RefusalLog({ ...SILENT_LOG, warn: (fields) => void told.push(fields) });
  for (const agent of ["a", "b", "a", "b"]) {
    refusals.note(agent, new ProtocolError("INVALID_PARAMS", "x".repeat(5_000)));
    refusals.note(agent, new ProtocolError("PARSE_ERROR", "no JSON"));
  }
  const hint = "x".repeat(200);
  expect(told).toEqual([
    { agent: "a", why: "INVALID_PARAMS", hint },
    { agent: "a", why: "PARSE_ERROR", hint: "no JSON" },
    { agent: "b", why: "INVALID_PARAMS", hint },
    { agent: "b", why: "PARSE_ERROR", hint: "no JSON" },
  ]);
});
