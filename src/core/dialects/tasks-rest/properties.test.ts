import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import { fold, TaskFold } from "../../model/fold.ts";
import type { Loss } from "../../model/loss.ts";
import type { StreamFrame } from "../../model/operation.ts";
import { legalLog } from "../../model/testing/events.ts";
import { cases } from "../../model/testing/exploring.ts";
import { toTask } from "../shared/legacy/encode.ts";
import { nearMisses } from "../suite/arbitraries.ts";
import { toolsOf } from "../suite/join.ts";
import { legacyValues } from "../suite/legacy-values.ts";
import { httpCalling } from "./call-http.ts";
import { readCard } from "./card.ts";
import { decodeRequest } from "./decode.ts";
import { encodeAnswer, FORM, StreamEncoder } from "./encode.ts";
import { matchRoute } from "./http-routes.ts";

const CASES = { numRuns: cases(10_000) };
const near = nearMisses(
  ["id", "contextId", "taskId", "messageId", "message", "role", "parts", "type", "text", "file", "data", "bytes", "uri"]
    .concat([
      "status",
      "state",
      "timestamp",
      "artifact",
      "artifacts",
      "artifactId",
      "history",
      "index",
      "append",
      "task",
    ])
    .concat(["url", "error", "code", "detail", "loc", "msg", "violations", "skills", "authentication", "inputModes"]),
  ["user", "agent", "text", "data", "completed", "unknown", "2025-05-01T10:00:00", "aGk=", "task-not-found", "x:y"],
);

function throwsOnlyProtocolErrors(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
  }
}

describe("whatever comes", () => {
  const { ids } = toolsOf();
  const maybe = fc.option(fc.string(), { nil: undefined });

  it("a request is understood or refused", () => {
    const kinds = fc.constantFrom("send", "stream", "get", "cancel", "subscribe" as const);
    fc.assert(
      fc.property(kinds, fc.string(), fc.string(), near, maybe, (kind, path, query, body, lastEventId) => {
        throwsOnlyProtocolErrors(() => {
          const id = matchRoute(path)?.id ?? "";
          decodeRequest(kind, { id, query, body, lastEventId }, { maxItems: 100 }, ids);
        });
      }),
      CASES,
    );
  });

  it("an answer is understood or refused", () => {
    const kinds = fc.constantFrom("send", "get", "cancel" as const);
    const statuses = fc.constantFrom(200, 204, 400, 404, 405, 422, 500);
    fc.assert(
      fc.property(kinds, statuses, near, fc.constantFrom("message", "error"), (kind, status, value, event) => {
        const text = JSON.stringify(value);
        throwsOnlyProtocolErrors(() => httpCalling.decode(kind, { status, contentType: "application/json", text }));
        throwsOnlyProtocolErrors(() => httpCalling.decodeFrame({ data: text, event, id: "1" }));
      }),
      CASES,
    );
  });

  it("a card is read or not", () => {
    fc.assert(
      fc.property(near, maybe, (value, cardUrl) => {
        expect([undefined, "possible", "likely"]).toContain(readCard(value, cardUrl)?.confidence);
      }),
      CASES,
    );
  });
});

describe("whatever can be encoded", () => {
  const { message: anyMessage, task: anyTask } = legacyValues({ lists: false });

  it("arrives as it was", () => {
    const { ids } = toolsOf();
    const target = { url: "https://x.example", tenant: undefined, headers: {}, extensions: [] };
    fc.assert(
      fc.property(anyMessage, (message) => {
        const said = httpCalling.encode({ kind: "send", message }, target);
        const words = { id: "", query: "", body: JSON.parse(said.value.body as string), lastEventId: undefined };
        const heard = decodeRequest("send", words, {}, ids);
        expect([...said.losses, ...heard.losses]).toEqual([]);
        expect(heard.value).toEqual({ kind: "send", message, alwaysTask: true });
      }),
      CASES,
    );
  });

  it("comes back as it was", () => {
    fc.assert(
      fc.property(anyTask, (task) => {
        const losses: Loss[] = [];
        const text = encodeAnswer({ kind: "get", operation: { kind: "get", id: task.id }, outcome: task }, losses);
        const heard = httpCalling.decode("get", { status: 200, contentType: "application/json", text });
        expect([...losses, ...heard.losses]).toEqual([]);
        expect(heard.value).toEqual(task);
      }),
      CASES,
    );
  });
});

describe("any log", () => {
  it("is sent from any place by the task as it stood at each change of state", () => {
    fc.assert(
      fc.property(legalLog, fc.nat(), (log, any) => {
        const at = 1 + (any % log.length);
        const known = fold(log.slice(0, at));
        const event = { task: known.toTask() };
        const encoder = new StreamEncoder({ kind: "subscribe", id: "task" }, () => {});
        const said: StreamFrame[] = [];
        encoder.encode({ number: at, event, json: JSON.stringify(event) }, said);
        for (const entry of log.slice(at)) encoder.encode(entry, said);

        expect(said.map(({ number }) => number)).toEqual(log.slice(at - 1).map(({ number }) => number));
        const follow = TaskFold.from(known.toTask(), at);
        for (const [index, entry] of log.slice(at).entries()) {
          follow.apply(entry);
          const shown = JSON.parse((said[index + 1] as StreamFrame).json);
          const expected = JSON.parse(JSON.stringify(toTask(follow.toTask(), [], FORM)));
          if ("statusUpdate" in entry.event) {
            expect(shown).toEqual({ task: expected });
          } else if ("artifactUpdate" in entry.event) {
            const { artifactId } = entry.event.artifactUpdate.artifact;
            const named = expected.artifacts.findIndex((one: { artifactId: string }) => one.artifactId === artifactId);
            expect(shown.artifact).toMatchObject({ artifactId, index: named });
          }
        }
      }),
      { numRuns: cases(2_000) },
    );
  });
});
