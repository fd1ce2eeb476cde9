import { describe, expect, it } from "vitest";
import { agentOf, chunk, inputText, status } from "../../../../core/engine/testing/agents.ts";
import { FakeClock, settle } from "../../../../core/engine/testing/fake-clock.ts";
import { Harness } from "../../../../core/engine/testing/harness.ts";
import { type CounterName, SILENT_LOG } from "../../../../core/model/ports.ts";
import { createDeferred } from "../../../../core/wire/link.ts";
import type { PhoneAddress, PhoneNotification } from "../../codec/render/notification.ts";
import { PhoneNotifications, type PhoneNotificationsOptions } from "./offline-notifications.ts";

const ENTRY = { dialect: "test", agent: "agent", owner: "alice", apiId: "api" };
const phone = { sessionId: "s", pushId: "phone", loginSessionId: undefined };

let readers = 0;

/** A server with one entry, whose agent does what the message names when `proceed` is called. */
class Scene {
  readonly sent: { readonly notification: PhoneNotification; readonly to: readonly PhoneAddress[] }[] = [];
  readonly counted: CounterName[] = [];
  origin = "test";
  proceed = createDeferred();
  readonly harness: Harness;
  readonly notifications: PhoneNotifications;
  endRoute = async (): Promise<void> => {};

  private constructor(harness: Harness, options: Partial<PhoneNotificationsOptions>) {
    this.harness = harness;
    this.notifications = this.create(options);
  }

  static async open(options: Partial<PhoneNotificationsOptions> = {}, after?: Scene): Promise<Scene> {
    let scene: Scene | undefined;
    const agent = agentOf(
      async function* (turn) {
        yield status("TASK_STATE_WORKING");
        await scene?.proceed.promise;
        const text = inputText(turn);
        if (text === "ask") yield status("TASK_STATE_INPUT_REQUIRED", "Which one?");
        else if (text === "fail") yield status("TASK_STATE_FAILED", "Broken.");
        else yield chunk("answer", `About ${text}`, false);
      },
      { onCrash: "resume" },
    );
    const harness = await Harness.start({ agent, ...(after === undefined ? undefined : { after: after.harness }) });
    scene = new Scene(harness, options);
    scene.serve();
    await settle();
    return scene;
  }

  create(options: Partial<PhoneNotificationsOptions> = {}): PhoneNotifications {
    const { engine } = this.harness;
    const service = { ...engine.agent("agent"), originOf: async () => this.origin };
    return new PhoneNotifications({
      entry: ENTRY,
      language: "en",
      everyDevice: false,
      push: {
        push: async (notification, to) => {
          this.sent.push({ notification, to });
          return to.map(() => "sent");
        },
        stop: () => {},
      },
      host: () => ({ records: engine.records, agents: new Map([["agent", service]]) }),
      uniqueId: () => `reader-${++readers}`,
      clock: this.harness.clock,
      log: SILENT_LOG,
      meter: { count: (name) => void this.counted.push(name) },
      ...options,
    });
  }

  serve(): void {
    const { notifications } = this;
    this.endRoute = this.harness.engine.serveRoute({
      route: notifications.route,
      deliver: (delivery) => notifications.deliver(delivery),
    });
  }

  /** A task whose answer is read. */
  async read(text: string, taskId?: string) {
    const attendance = this.notifications.attend("s");
    const task = await this.harness.begin(text, { replyTo: attendance.replyTo, ...(taskId && { taskId }) });
    await settle();
    return { ...attendance, id: task.id };
  }

  async end(): Promise<void> {
    this.proceed.resolve();
    await settle(20);
  }

  async isOwed(id: string): Promise<boolean> {
    return (await this.harness.memory.delivery(id, "replies", "answer")) !== undefined;
  }

  get texts(): string[] {
    return this.sent.map(({ notification }) => notification.text);
  }
}

describe("a user who left", () => {
  it("is notified when the task has ended, once", async () => {
    const scene = await Scene.open();
    await scene.notifications.registerDevice(phone);
    const { id, left } = await scene.read("t");
    left();
    await scene.harness.clock.advance(60_000);
    expect(scene.sent).toEqual([]);
    expect(await scene.isOwed(id)).toBe(true);
    await scene.end();
    const notification = { taskId: id, state: "completed", text: "About t" };
    expect(scene.sent).toEqual([{ notification, to: [{ pushId: "phone" }] }]);
    expect(await scene.isOwed(id)).toBe(false);
  });

  it("is notified of a task that ended while it was read", async () => {
    const scene = await Scene.open();
    await scene.notifications.registerDevice(phone);
    const { left } = await scene.read("t");
    await scene.end();
    expect(scene.sent).toEqual([]);
    left();
    await settle(20);
    expect(scene.texts).toEqual(["About t"]);
  });

  it.each([true, false])(
    "is not notified after reading to the end (known before the task ended: %s)",
    async (before) => {
      const scene = await Scene.open();
      await scene.notifications.registerDevice(phone);
      const { finished, id } = await scene.read("t");
      if (before) finished();
      await scene.end();
      if (!before) finished();
      await settle(20);
      expect(scene.sent).toEqual([]);
      expect(await scene.isOwed(id)).toBe(false);
    },
  );

  it("is notified of a failure, and of a question until it is answered", async () => {
    const scene = await Scene.open();
    await scene.notifications.registerDevice(phone);
    (await scene.read("fail")).left();
    const asking = await scene.read("ask");
    asking.left();
    await scene.end();
    expect(scene.sent.map(({ notification }) => [notification.state, notification.text])).toEqual([
      ["failed", "Broken."],
      ["completed", "Which one?"],
    ]);
    const answered = await scene.read("this", asking.id);
    await settle(20);
    answered.left();
    await settle(20);
    expect(scene.texts.slice(2)).toEqual(["About this"]);
    expect(await scene.isOwed(asking.id)).toBe(false);
  });

  it("and answered another way while the question was read is notified of the end", async () => {
    const scene = await Scene.open();
    await scene.notifications.registerDevice(phone);
    const { id, left } = await scene.read("ask");
    await scene.end();
    scene.proceed = createDeferred();
    await scene.harness.begin("this", { taskId: id });
    left();
    await settle(20);
    expect(scene.sent).toEqual([]);
    await scene.end();
    expect(scene.texts).toEqual(["About this"]);
  });

  it("is notified of the end after answering and leaving while the question is being sent", async () => {
    const asked = createDeferred();
    const sent: PhoneNotification[] = [];
    const push = {
      push: async (notification: PhoneNotification, to: readonly PhoneAddress[]) => {
        sent.push(notification);
        if (notification.question !== undefined) await asked.promise;
        return to.map(() => "sent" as const);
      },
      stop: () => {},
    };
    const scene = await Scene.open({ push });
    await scene.notifications.registerDevice(phone);
    const { id, left } = await scene.read("ask");
    left();
    await scene.end();
    (await scene.read("this", id)).left();
    asked.resolve();
    await settle(20);
    expect(sent.map(({ text }) => text)).toEqual(["Which one?", "About this"]);
    expect(await scene.isOwed(id)).toBe(false);
  });

  it("is not notified of a canceled task", async () => {
    const scene = await Scene.open();
    await scene.notifications.registerDevice(phone);
    const { id, left } = await scene.read("t");
    left();
    const canceled = scene.harness.cancel(id);
    await scene.harness.clock.advance(60_000);
    expect((await canceled).status.state).toBe("TASK_STATE_CANCELED");
    expect(scene.sent).toEqual([]);
    expect(await scene.isOwed(id)).toBe(false);
  });

  it("is not notified after a day", async () => {
    const clock = new FakeClock();
    const scene = await Scene.open({ clock });
    await scene.notifications.registerDevice(phone);
    const { id, left } = await scene.read("t");
    left();
    await clock.advance(24 * 3_600_000);
    expect(scene.counted).toEqual([]);
    await scene.end();
    expect(scene.sent).toEqual([]);
    expect(scene.counted).toEqual(["phone_notices_dropped"]);
    expect(await scene.isOwed(id)).toBe(false);
  });

  it("is notified later if the devices cannot be read", async () => {
    const scene = await Scene.open();
    const { engine } = scene.harness;
    let isBroken = true;
    const record: typeof engine.records.record = async (space, key) => {
      if (isBroken) throw new Error("The disk is full.");
      return engine.records.record(space, key);
    };
    const { notifications } = scene;
    await notifications.registerDevice(phone);
    await scene.endRoute();
    const host = () => ({ records: { ...engine.records, record }, agents: new Map() });
    const broken = scene.create({ host });
    engine.serveRoute({ route: broken.route, deliver: (delivery) => broken.deliver(delivery) });
    await scene.harness.begin("t", { replyTo: broken.replyTo("s") });
    await scene.end();
    expect(scene.sent).toEqual([]);
    isBroken = false;
    await scene.harness.clock.advance(60_000);
    expect(scene.texts).toEqual(["About t"]);
  });

  it("is notified on the devices of the conversation, the newest ones, under their logins", async () => {
    const scene = await Scene.open();
    const { notifications } = scene;
    for (let device = 1; device <= 10; device++) {
      await notifications.registerDevice({ ...phone, pushId: `phone-${device}` });
    }
    await notifications.registerDevice({ ...phone, pushId: "phone-5", loginSessionId: "login" });
    await notifications.registerDevice({ ...phone, pushId: undefined });
    await notifications.registerDevice({ ...phone, pushId: "x".repeat(513) });
    await notifications.registerDevice({ ...phone, sessionId: "of another", pushId: "of another" });
    (await scene.read("t")).left();
    await scene.end();
    const devices = ["phone-3", "phone-4", "phone-6", "phone-7", "phone-8", "phone-9", "phone-10"];
    const to = [...devices.map((pushId) => ({ pushId })), { pushId: "phone-5", loginSessionId: "login" }];
    expect(scene.sent).toMatchObject([{ to }]);
  });

  it("is notified on every device if all of them belong to one user", async () => {
    const scene = await Scene.open({ everyDevice: true });
    await scene.notifications.registerDevice(phone);
    await scene.notifications.registerDevice({ ...phone, sessionId: "other", pushId: "tablet" });
    const stranger = scene.create({ entry: { ...ENTRY, apiId: "another" }, everyDevice: true });
    await stranger.registerDevice({ ...phone, pushId: "stranger" });
    (await scene.read("t")).left();
    await scene.end();
    expect(scene.sent).toMatchObject([{ to: [{ pushId: "phone" }, { pushId: "tablet" }] }]);
  });

  it("is notified by the next process of what this one did not send, and if this one ends while they read", async () => {
    const stopped = createDeferred();
    const push = { push: () => stopped.promise.then(() => ["stopped" as const]), stop: () => stopped.resolve() };
    const first = await Scene.open({ push });
    await first.notifications.registerDevice(phone);
    const unsent = await first.read("unsent");
    unsent.left();
    await first.end();
    first.proceed = createDeferred();
    await first.read("read");
    first.notifications.stop();
    await first.endRoute();
    expect(await first.isOwed(unsent.id)).toBe(true);
    first.harness.crash();
    await first.harness.clock.advance(30_000);
    const second = await Scene.open({}, first);
    await second.end();
    await second.harness.clock.advance(10_000);
    expect([...second.texts].sort()).toEqual(["About read", "About unsent"]);
  });
});

describe("a tapped notification", () => {
  it("gives the whole answer", async () => {
    const scene = await Scene.open();
    const { id } = await scene.read("t");
    await scene.end();
    expect(await scene.notifications.readAnswer(id)).toBe("About t");
    expect(await scene.notifications.readAnswer("unknown")).toBeUndefined();
  });

  it("gives nothing of another dialect's task, or if the store cannot be read", async () => {
    const scene = await Scene.open();
    const { id } = await scene.read("t");
    await scene.end();
    scene.origin = "a2a-v1";
    expect(await scene.notifications.readAnswer(id)).toBeUndefined();
    const broken = scene.create({
      host: () => {
        throw new Error("Broken.");
      },
    });
    expect(await broken.readAnswer(id)).toBeUndefined();
  });
});
