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

const auth = { apiKeys: [{ key: "alice-key", owner: "alice" }] };

describeBindings("Authentication", { auth }, (scene) => {
  it.each(Object.keys(REQUESTS) as Method[])("[81] comes before all else that %s does", async (method) => {
    const params = { ...REQUESTS[method] };
    for (const headers of [{}, { "x-api-key": "wrong" }]) {
      expect((await scene.client().refusal(method, params, headers)).reason).toBe("UNAUTHENTICATED");
    }
    expect(scene.stage.started).toEqual([]);
  });
});
