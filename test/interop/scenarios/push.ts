import { expect } from "vitest";
import type { Scenario } from "../scenario.ts";
import { refusal, says, saysAtOnce, sendTask } from "../send-helpers.ts";

const HOOK = "https://hooks.example/a2a";

export const PUSH: readonly Scenario[] = [
  {
    name: "push: create and get",
    operation: "push-create",
    shows: "A webhook is registered for a task and can be read back.",
    async run(driver) {
      const { id: taskId } = await sendTask(driver, says("ask"));
      const config = { id: "mine", url: HOOK, token: "t", authentication: { scheme: "Bearer", credentials: "c" } };
      // Whether secrets are shown again is the server's choice.
      const shown = { id: "mine", taskId, url: HOOK, authentication: { scheme: "Bearer" } };
      expect(await driver.createPushConfig(taskId, config)).toMatchObject(shown);
      expect(await driver.getPushConfig(taskId, "mine")).toMatchObject(shown);
    },
  },
  {
    name: "push: list",
    operation: "push-list",
    shows: "All webhooks of a task, and none of another.",
    async run(driver) {
      const { id: taskId } = await sendTask(driver, says("ask"));
      const other = await sendTask(driver, says("ask"));
      await driver.createPushConfig(taskId, { id: "one", url: `${HOOK}/1` });
      await driver.createPushConfig(taskId, { id: "two", url: `${HOOK}/2` });
      await driver.createPushConfig(other.id, { id: "three", url: `${HOOK}/3` });
      const listed = await driver.listPushConfigs(taskId);
      expect(listed.map(({ id, url }) => [id, url])).toEqual([
        ["one", `${HOOK}/1`],
        ["two", `${HOOK}/2`],
      ]);
    },
  },
  {
    name: "push: delete",
    operation: "push-delete",
    shows: "A deleted webhook is gone, the others stay.",
    async run(driver) {
      const { id: taskId } = await sendTask(driver, says("ask"));
      await driver.createPushConfig(taskId, { id: "one", url: `${HOOK}/1` });
      await driver.createPushConfig(taskId, { id: "two", url: `${HOOK}/2` });
      await driver.deletePushConfig(taskId, "one");
      expect((await driver.listPushConfigs(taskId)).map(({ id }) => id)).toEqual(["two"]);
      expect(await refusal(driver, () => driver.getPushConfig(taskId, "one"))).not.toBe("nothing was refused");
    },
  },
  {
    name: "push: with the message",
    operation: "push-create",
    shows: "A webhook given with a message is one of the task that the message began.",
    async run(driver) {
      const { message } = saysAtOnce("ask");
      const taskPushNotificationConfig = { id: "inline", url: HOOK };
      const { id: taskId } = await sendTask(driver, {
        message,
        configuration: { taskPushNotificationConfig, returnImmediately: false },
      });
      expect(await driver.listPushConfigs(taskId)).toMatchObject([{ id: "inline", url: HOOK }]);
    },
  },
];
