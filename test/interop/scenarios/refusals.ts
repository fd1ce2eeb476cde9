import { randomUUID } from "node:crypto";
import { expect } from "vitest";
import type { ErrorCode } from "../../../src/core/model/errors.ts";
import type { OperationKind } from "../../../src/core/model/operation.ts";
import type { Driver } from "../driver.ts";
import type { Scenario } from "../scenario.ts";
import { collect, endedTask, refusal, says, sendTask } from "../send-helpers.ts";

/** Some servers look at the id only, others do without one; all want one or the other. */
const EMPTY = { messageId: "", parts: [] };

export const REFUSALS: readonly Scenario[] = [
  refused("get: no such task", "get", "TASK_NOT_FOUND", (driver) => driver.get(randomUUID())),
  refused("cancel: no such task", "cancel", "TASK_NOT_FOUND", (driver) => driver.cancel(randomUUID())),
  refused("subscribe: no such task", "subscribe", "TASK_NOT_FOUND", (driver) =>
    collect(driver.subscribe(randomUUID())),
  ),
  refused("send: no such task", "send", "TASK_NOT_FOUND", (driver) =>
    driver.send(says("echo lost", { taskId: randomUUID() })),
  ),
  refused("cancel: already ended", "cancel", "TASK_NOT_CANCELABLE", async (driver) => {
    const { id } = await endedTask(driver);
    return () => driver.cancel(id);
  }),
  refused("send: already ended", "send", "UNSUPPORTED_OPERATION", async (driver) => {
    const { contextId, id: taskId } = await endedTask(driver);
    return () => driver.send(says("echo more", { taskId, contextId }));
  }),
  refused("subscribe: already ended", "subscribe", "UNSUPPORTED_OPERATION", async (driver) => {
    const { id } = await endedTask(driver);
    return () => collect(driver.subscribe(id));
  }),
  refused("send: an empty message", "send", "INVALID_PARAMS", (driver) => driver.send(says("", EMPTY))),
  refused("stream: an empty message", "stream", "INVALID_PARAMS", (driver) => collect(driver.stream(says("", EMPTY)))),
  refused("send: a media type not taken", "send", "CONTENT_TYPE_NOT_SUPPORTED", (driver) =>
    driver.send(says("parts", { parts: [{ text: "parts" }, { raw: "AAEC", mediaType: "video/x-unheard-of" }] })),
  ),
  {
    ...refused("push: not offered", "push-delete", "PUSH_NOTIFICATION_NOT_SUPPORTED", async (driver) => {
      const { id } = await sendTask(driver, says("ask"));
      return () => driver.deletePushConfig(id, "any");
    }),
    without: "push",
  },
];

type Call = (driver: Driver) => Promise<unknown>;

/** `call` makes the call that is to be refused, or prepares for it and returns it. */
function refused(name: string, operation: OperationKind, code: ErrorCode, call: Call): Scenario {
  return {
    name,
    operation,
    shows: `The client throws its error for ${code}.`,
    async run(driver) {
      const refusing = await refusal(driver, async () => {
        const prepared = await call(driver);
        if (typeof prepared === "function") await prepared();
      });
      expect(refusing).toBe(code);
    },
  };
}
