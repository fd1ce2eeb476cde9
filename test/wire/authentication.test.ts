import { expect, it } from "vitest";
import type { Method } from "../support/bindings.ts";
import { describeBindings } from "../support/scene.ts";
import { userMessage } from "../support/wire-client.ts";

const REQUESTS: Readonly<Record<Method, object>> = {
  SendMessage: { message: userMessage("work") },
  SendStreamingMessage: { message: userMessage("work") },
  GetTask: { id: "none" },
  ListTasks: {},
  CancelTask: { id: "none" },
  SubscribeToTask: { id: "none" },
  CreateTaskPushNotificationConfig: { taskId: "none", url: "https://hook.example/a" },
  GetTaskPushNotificationConfig: { taskId: "none", id: "none" },
  ListTaskPushNotificationConfigs: { taskId: "none" },
  DeleteTaskPushNotificationConfig: { taskId: "none", id: "none" },
  GetExtendedAgentCard: {},
};

const auth = {
  apiKeys: [
    { key: "alice-key", owner: "alice" },
    { key: "alice-other-key", owner: "alice" },
    { key: "bob-key", owner: "bob" },
  ],
  basic: [{ user: "bob", password: "p" }],
};

describeBindings("Authentication", { auth }, (scene) => {
  it.each(Object.keys(REQUESTS) as Method[])("[AUTH-SERVER-002] comes before all else that %s does", async (method) => {
    const params = { ...REQUESTS[method] };
    for (const headers of [undefined, { "x-api-key": "wrong" }]) {
      expect((await scene.client().refusal(method, params, headers)).reason).toBe("UNAUTHENTICATED");
    }
    expect(scene.stage.started).toEqual([]);
  });

  it.each([
    ["another's key", "Bearer bob-key"],
    ["another's password", `Basic ${btoa("bob:p")}`],
    ["a token that is not valid", "Bearer wrong"],
  ])("[AUTH-SERVER-002] refuses a key together with %s", async (_, authorization) => {
    const headers = { "x-api-key": "alice-key", authorization };
    const refused = await scene.client().refusal("SendMessage", { message: userMessage("work") }, headers);
    expect(refused.reason).toBe("UNAUTHENTICATED");
    expect(scene.stage.started).toEqual([]);
  });

  it("[AUTH-SERVER-002] takes several credentials of one caller", async () => {
    for (const key of ["alice-key", "alice-other-key"]) {
      const headers = { "x-api-key": "alice-key", authorization: `Bearer ${key}` };
      expect((await scene.client().call("ListTasks", {}, headers)).result).toMatchObject({ tasks: [] });
    }
  });
});
