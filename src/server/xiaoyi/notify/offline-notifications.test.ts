import { describe, expect, it } from "vitest";
import type { PhoneAddress, PhoneNotification } from "../../../dialects/xiaoyi/render/notification.ts";
import { FakeClock, settle } from "../../../engine/testing/fake-clock.ts";
import { ProtocolError, taskNotFound } from "../../../model/errors.ts";
import type { CallContext, Operation, OutcomeOf } from "../../../model/operation.ts";
import { type CounterName, SILENT_LOG } from "../../../model/ports.ts";
import type { Task, TaskState } from "../../../model/task.ts";
import { createDeferred } from "../../../wire/link.ts";
import { FileBackedMap } from "../file-backed-map.ts";
import { DeviceRegistry } from "./devices.ts";
import type { PushOutcome } from "./notification-sender.ts";
import {
  type PendingNotification,
  PhoneNotifications,
  type PhoneNotificationsOptions,
} from "./offline-notifications.ts";

/** An agent whose tasks are what the test says. */
class Tasks {
  readonly states = new Map<string, TaskState>();
  readonly calls: CallContext[] = [];
  looks = 0;
  origin = "xiaoyi-http";
  broken = false;

  readonly service = {
    dispatch: async <O extends Operation>(operation: O, call: CallContext): Promise<OutcomeOf<O>> => {
      this.looks++;
      this.calls.push(call);
      if (this.broken) throw new ProtocolError("INTERNAL_ERROR", "Broken.");
      const id = operation.kind === "get" ? operation.id : "";
      const state = this.states.get(id);
      if (state === undefined) throw taskNotFound(id);
      return this.task(id, state) as OutcomeOf<O>;
    },
    originOf: async () => this.origin,
  };

  task(id: string, state: TaskState): Task {
    return {
      id,
      contextId: "s",
      status: { state },
      artifacts: [{ artifactId: "a", parts: [{ text: `About ${id}` }] }],
    };
  }
}

class Scene {
  readonly clock = new FakeClock();
  readonly tasks = new Tasks();
  readonly told: { readonly notice: PhoneNotification; readonly to: readonly string[]; readonly logins: unknown[] }[] =
    [];
  readonly counted: CounterName[] = [];
  outcome: PushOutcome = "sent";
  readonly devices: ConstructorParameters<typeof DeviceRegistry>[0] = new FileBackedMap(undefined, 100, SILENT_LOG);
  readonly pending = new FileBackedMap<PendingNotification>(undefined, 100, SILENT_LOG);

  notifications(options: Partial<PhoneNotificationsOptions> = {}): PhoneNotifications {
    return new PhoneNotifications({
      language: "zh",
      scope: "entry",
      dialect: "xiaoyi-http",
      owner: "alice",
      service: () => this.tasks.service,
      everyDevice: false,
      push: {
        push: async (notice: PhoneNotification, to: readonly PhoneAddress[]) => {
          const logins = to.map(({ loginSessionId }) => loginSessionId);
          this.told.push({ notice, to: to.map(({ pushId }) => pushId), logins });
          return to.map(() => this.outcome);
        },
        stop: () => {},
      },
      book: new DeviceRegistry(this.devices),
      pending: this.pending,
      clock: this.clock,
      log: SILENT_LOG,
      meter: { count: (name) => void this.counted.push(name) },
      ...options,
    });
  }
}

const phone = { sessionId: "s", pushId: "phone", loginSessionId: undefined };

describe("a user who left", () => {
  it("is told when the task has ended, once", async () => {
    const scene = new Scene();
    const notifications = scene.notifications();
    scene.tasks.states.set("t", "TASK_STATE_WORKING");
    void notifications.registerDevice(phone);
    notifications.notifyWhenDone("t", "s");
    notifications.notifyWhenDone("t", "s");
    await scene.clock.advance(60_000);
    expect(scene.told).toEqual([]);
    expect([await notifications.isPending("t"), await notifications.isPending("another")]).toEqual([true, false]);
    scene.tasks.states.set("t", "TASK_STATE_COMPLETED");
    await scene.clock.advance(60_000);
    const notice = { taskId: "t", state: "completed", text: "About t" };
    expect(scene.told).toEqual([{ notice, to: ["phone"], logins: [undefined] }]);
    expect(await scene.pending.entries()).toEqual([]);
    expect(scene.tasks.calls[0]).toMatchObject({ caller: { owner: "alice" }, dialect: "xiaoyi-http" });
  });

  it("is looked after ever more rarely, and for a day", async () => {
    const scene = new Scene();
    scene.tasks.states.set("t", "TASK_STATE_WORKING");
    scene.notifications().notifyWhenDone("t", "s");
    await scene.clock.advance(3_600_000);
    expect(scene.tasks.looks).toBeLessThan(120);
    expect(scene.counted).toEqual([]);
    await scene.clock.advance(24 * 3_600_000);
    expect(scene.counted).toEqual(["phone_notices_dropped"]);
    const { looks } = scene.tasks;
    expect(await scene.pending.entries()).toEqual([]);
    await scene.clock.advance(24 * 3_600_000);
    expect(scene.tasks.looks).toBe(looks);
  });

  it.each(["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"] as const)(
    "is told that the task is %s, once, and of its end only after leaving again",
    async (state) => {
      const scene = new Scene();
      const notifications = scene.notifications();
      scene.tasks.states.set("t", "TASK_STATE_WORKING");
      void notifications.registerDevice(phone);
      notifications.notifyWhenDone("t", "s");
      await scene.clock.advance(60_000);
      scene.tasks.states.set("t", state);
      await scene.clock.advance(60_000);
      expect(scene.told).toMatchObject([{ notice: { taskId: "t", text: "About t", question: "" }, to: ["phone"] }]);
      expect(await scene.pending.entries()).toEqual([]);
      scene.tasks.states.set("t", "TASK_STATE_COMPLETED");
      await scene.clock.advance(60_000);
      expect(scene.told).toHaveLength(1);
      notifications.notifyWhenDone("t", "s");
      await scene.clock.advance(60_000);
      expect(scene.told.slice(1)).toMatchObject([{ notice: { state: "completed" } }]);
      expect(scene.told[1]?.notice).not.toHaveProperty("question");
    },
  );

  it("is told of the end who answered and left while the question was on its way", async () => {
    const scene = new Scene();
    const asked = createDeferred();
    const sent: PhoneNotification[] = [];
    const push = {
      push: async (notice: PhoneNotification, to: readonly PhoneAddress[]) => {
        sent.push(notice);
        if (notice.question !== undefined) await asked.promise;
        return to.map(() => "sent" as const);
      },
      stop: () => {},
    };
    const notifications = scene.notifications({ push });
    scene.tasks.states.set("t", "TASK_STATE_INPUT_REQUIRED");
    void notifications.registerDevice(phone);
    notifications.notifyWhenDone("t", "s");
    await scene.clock.advance(5_000);
    scene.tasks.states.set("t", "TASK_STATE_WORKING");
    notifications.notifyWhenDone("t", "s");
    asked.resolve();
    await settle();
    scene.tasks.states.set("t", "TASK_STATE_COMPLETED");
    await scene.clock.advance(60_000);
    expect(sent.map(({ question }) => question)).toEqual(["", undefined]);
    expect(await scene.pending.entries()).toEqual([]);
  });

  it.each([["TASK_STATE_CANCELED"], [undefined]] as const)("is not told of a task that is %s", async (state) => {
    const scene = new Scene();
    const notifications = scene.notifications();
    if (state !== undefined) scene.tasks.states.set("t", state);
    void notifications.registerDevice(phone);
    notifications.notifyWhenDone("t", "s");
    await scene.clock.advance(60_000);
    expect(scene.told).toEqual([]);
    expect(await scene.pending.entries()).toEqual([]);
  });

  it("is not told of what was seen after all", async () => {
    const scene = new Scene();
    const notifications = scene.notifications();
    scene.tasks.states.set("t", "TASK_STATE_COMPLETED");
    void notifications.registerDevice(phone);
    notifications.notifyWhenDone("t", "s");
    notifications.cancel("t");
    notifications.cancel("another");
    await scene.clock.advance(60_000);
    expect(scene.told).toEqual([]);
    expect(await scene.pending.entries()).toEqual([]);
  });

  it("is told later where the task cannot be looked at now", async () => {
    const scene = new Scene();
    const notifications = scene.notifications();
    scene.tasks.states.set("t", "TASK_STATE_FAILED");
    scene.tasks.broken = true;
    void notifications.registerDevice(phone);
    notifications.notifyWhenDone("t", "s");
    await scene.clock.advance(60_000);
    expect(scene.told).toEqual([]);
    scene.tasks.broken = false;
    await scene.clock.advance(60_000);
    expect(scene.told).toMatchObject([{ notice: { state: "failed" } }]);
  });

  it("is told on the devices of the conversation, the newest ones, under their logins", async () => {
    const scene = new Scene();
    const notifications = scene.notifications();
    for (let device = 1; device <= 10; device++)
      void notifications.registerDevice({ ...phone, pushId: `phone-${device}` });
    void notifications.registerDevice({ ...phone, pushId: "phone-5", loginSessionId: "login" });
    void notifications.registerDevice({ ...phone, pushId: undefined });
    void notifications.registerDevice({ ...phone, pushId: "x".repeat(513) });
    void notifications.registerDevice({ ...phone, sessionId: "of another", pushId: "of another" });
    await settle();
    scene.tasks.states.set("t", "TASK_STATE_COMPLETED");
    notifications.notifyWhenDone("t", "s");
    await scene.clock.advance(60_000);
    expect(scene.told).toMatchObject([
      {
        to: ["phone-3", "phone-4", "phone-6", "phone-7", "phone-8", "phone-9", "phone-10", "phone-5"],
        logins: [...Array(7).fill(undefined), "login"],
      },
    ]);
  });

  it("is told on every device where all of them are one user's", async () => {
    const scene = new Scene();
    const notifications = scene.notifications({ everyDevice: true });
    void notifications.registerDevice(phone);
    void notifications.registerDevice({ ...phone, sessionId: "other", pushId: "tablet" });
    void scene
      .notifications({ scope: "another entry", everyDevice: true })
      .registerDevice({ ...phone, pushId: "stranger" });
    scene.tasks.states.set("t", "TASK_STATE_COMPLETED");
    notifications.notifyWhenDone("t", "s");
    await scene.clock.advance(60_000);
    expect(scene.told).toMatchObject([{ to: ["phone", "tablet"] }]);
  });

  it("is told by the next process of what this one did not come to", async () => {
    const scene = new Scene();
    const first = scene.notifications();
    scene.tasks.states.set("waits", "TASK_STATE_WORKING");
    scene.tasks.states.set("stopped", "TASK_STATE_COMPLETED");
    scene.outcome = "stopped";
    void first.registerDevice(phone);
    first.notifyWhenDone("waits", "s");
    first.notifyWhenDone("stopped", "s");
    await scene.clock.advance(5_000);
    await first.stop();
    const { looks } = scene.tasks;
    await scene.clock.advance(60_000);
    expect(scene.tasks.looks).toBe(looks);
    scene.outcome = "sent";
    scene.told.length = 0;
    scene.tasks.states.set("waits", "TASK_STATE_COMPLETED");
    await scene.notifications({ scope: "another entry" }).start();
    const second = scene.notifications();
    await second.start();
    await scene.clock.advance(60_000);
    expect(scene.told.map(({ notice }) => notice.taskId).sort()).toEqual(["stopped", "waits"]);
    expect(await scene.pending.entries()).toEqual([]);
  });

  it("is one of so many at most", async () => {
    const scene = new Scene();
    const notifications = scene.notifications();
    for (let task = 0; task <= 1_000; task++) {
      scene.tasks.states.set(`t${task}`, "TASK_STATE_COMPLETED");
      notifications.notifyWhenDone(`t${task}`, "s");
    }
    await scene.clock.advance(1_000);
    expect(scene.tasks.looks).toBe(1_000);
    expect(scene.counted).toEqual(["phone_notices_dropped"]);
  });
});

describe("a notification that was tapped", () => {
  it("gives all of the answer", async () => {
    const scene = new Scene();
    scene.tasks.states.set("t", "TASK_STATE_COMPLETED");
    expect(await scene.notifications().readAnswer("t")).toBe("About t");
    expect(await scene.notifications().readAnswer("unknown")).toBeUndefined();
    scene.tasks.broken = true;
    expect(await scene.notifications().readAnswer("t")).toBeUndefined();
  });

  it("gives nothing that the platform has no business with", async () => {
    const scene = new Scene();
    scene.tasks.states.set("t", "TASK_STATE_COMPLETED");
    scene.tasks.origin = "a2a-v1";
    expect(await scene.notifications().readAnswer("t")).toBeUndefined();
  });
});
