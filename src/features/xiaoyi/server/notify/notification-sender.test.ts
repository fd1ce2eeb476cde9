import { afterEach, describe, expect, it } from "vitest";
import { echo } from "../../../../core/engine/testing/agents.ts";
import { FakeClock } from "../../../../core/engine/testing/fake-clock.ts";
import { createSharedMemory, Harness } from "../../../../core/engine/testing/harness.ts";
import { type CounterName, SILENT_LOG } from "../../../../core/model/ports.ts";
import { CarrierError, type ExchangeAnswer, type ExchangeCall } from "../../../../core/wire/exchange.ts";
import type { PhoneNotification } from "../../codec/render/notification.ts";
import { createSimulator, type Simulator, seededRandom } from "../../simulator/index.ts";
import { createTrustedExchanger } from "../trusted-exchanger.ts";
import { DeviceSpacing } from "./devices.ts";
import { NotificationSender, type NotificationSenderOptions } from "./notification-sender.ts";

const clock = new FakeClock();
const { engine } = await Harness.start({ agent: echo(), shared: createSharedMemory(clock) });
const logged: unknown[] = [];
const counted: CounterName[] = [];
afterEach(() => void counted.splice(0));
const write = (fields: unknown, message: string): void => void logged.push([fields, message]);

function createSpacing(): DeviceSpacing {
  return new DeviceSpacing(() => engine.records, SILENT_LOG);
}

function pusher({ devices = createSpacing(), ...options }: Partial<NotificationSenderOptions>): NotificationSender {
  let count = 0;
  return new NotificationSender({
    language: "zh",
    url: "https://platform.example/push",
    apiId: "api",
    keys: { accessKey: "the-access-key", secretKey: "the-secret-key" },
    spacingMs: 15_000,
    devices,
    exchanger: () => Promise.reject(new Error("Nobody is to be called.")),
    clock,
    random: () => 1,
    uniqueId: () => `id-${++count}`,
    log: { debug: write, info: write, warn: write, error: write },
    meter: { count: (name) => void counted.push(name) },
    ...options,
  });
}

function noticeOf(taskId: string, text = `Answer ${taskId}`): PhoneNotification {
  return { taskId, state: "completed", text };
}

describe("notifications, as the platform takes them", () => {
  let simulator: Simulator | undefined;
  afterEach(() => simulator?.close());

  async function platform(): Promise<{ simulator: Simulator; push: NotificationSender }> {
    simulator = await createSimulator({ clock, random: seededRandom(7) });
    const { accessKey, apiId = "", secretKey } = simulator.agent;
    const keys = { accessKey, secretKey };
    const push = pusher({ url: simulator.webhookUrl, apiId, keys, exchanger: createTrustedExchanger(65_536) });
    return { simulator, push };
  }

  it("come far enough apart that none is swallowed, whomever they are for", async () => {
    const { push, simulator } = await platform();
    const other = simulator.addPhone();
    expect(await push.push(noticeOf("s&1"), [simulator.phone])).toEqual(["sent"]);
    const second = push.push(noticeOf("s&2"), [simulator.phone]);
    const third = push.push(noticeOf("s&2"), [other]);
    await clock.advance(14_999);
    expect(simulator.phone.notifications.map(({ title }) => title)).toEqual(["Answer s&1"]);
    await clock.advance(1);
    expect(await second).toEqual(["sent"]);
    expect(simulator.phone.notifications.map(({ text }) => text)).toEqual(["Answer s&1", "Answer s&2"]);
    await clock.advance(14_999);
    expect(other.notifications).toEqual([]);
    await clock.advance(1);
    expect(await third).toEqual(["sent"]);
    expect(other.notifications.map(({ text }) => text)).toEqual(["Answer s&2"]);
    expect(simulator.webhook.swallowed).toBe(0);
    expect(simulator.violations).toEqual([]);
  });

  it("come far enough apart also where another entry, or a process before, notified the same device", async () => {
    const { simulator } = await platform();
    const { accessKey, apiId = "", secretKey } = simulator.agent;
    const route = { url: simulator.webhookUrl, apiId, keys: { accessKey, secretKey } };
    const push = async (taskId: string, devices: DeviceSpacing) => {
      const made = pusher({ ...route, devices, exchanger: createTrustedExchanger(65_536) });
      return made.push(noticeOf(taskId), [simulator.phone]);
    };
    const devices = createSpacing();
    expect(await push("s&1", devices)).toEqual(["sent"]);
    const second = push("s&2", devices);
    await clock.advance(15_000);
    expect(await second).toEqual(["sent"]);
    await clock.advance(1);
    const next = createSpacing();
    await next.load();
    const third = push("s&3", next);
    await clock.advance(14_998);
    expect(simulator.phone.notifications).toHaveLength(2);
    await clock.advance(1);
    expect(await third).toEqual(["sent"]);
    expect(simulator.phone.notifications.map(({ text }) => text)).toEqual(["Answer s&1", "Answer s&2", "Answer s&3"]);
    expect(simulator.webhook.swallowed).toBe(0);
  });

  it("name what is long, fit the bar, and are recognised when they come again", async () => {
    const { push, simulator } = await platform();
    const long = noticeOf("s&1", "小艺".repeat(2_000));
    await push.push(long, [simulator.phone]);
    expect(simulator.phone.notifications).toMatchObject([{ cut: false, text: undefined, pushDataId: "s&1" }]);
    const again = push.push(long, [simulator.phone]);
    await clock.advance(15_000);
    expect(await again).toEqual(["sent"]);
    expect(simulator.phone.notifications).toHaveLength(1);
    expect(simulator.violations).toEqual([]);
  });

  it("are refused with wrong keys, once", async () => {
    const { simulator } = await platform();
    const exchanger = createTrustedExchanger(65_536);
    const push = pusher({ url: simulator.webhookUrl, exchanger });
    expect(await push.push(noticeOf("s&1"), [simulator.phone])).toEqual(["refused"]);
    expect(simulator.violations).toHaveLength(1);
  });
});

describe("notifications that are not taken", () => {
  const told = answer(200, "");

  it("are retried where that may help, unchanged, later each time and signed again", async () => {
    const calls: ExchangeCall[] = [];
    const answers = [
      answer(503),
      answer(200, '{"result":{"code":"99911113"}}'),
      new CarrierError("timeout", "x"),
      told,
    ];
    const push = pusher({ exchanger: scripted(calls, answers) });
    const outcomes = push.push(noticeOf("s&1"), [{ pushId: "device" }]);
    await clock.advance(3_600_000);
    expect(await outcomes).toEqual(["sent"]);
    expect(counted).toEqual(["phone_notices_sent"]);
    const times = calls.map(({ headers }) => Number(headers["x-ts"]));
    expect(times.slice(1).map((time, index) => time - (times[index] ?? 0))).toEqual([15_000, 15_000, 20_000]);
    expect(calls).toHaveLength(4);
    expect(new Set(calls.map(({ body }) => body)).size).toBe(1);
    expect(new Set(calls.map(({ headers }) => headers["x-hag-trace-id"])).size).toBe(4);
    expect(new Set(calls.map(({ headers }) => headers["x-sign"])).size).toBe(4);
  });

  it("are given up in the end, and others go on meanwhile", async () => {
    const calls: ExchangeCall[] = [];
    const push = pusher({
      exchanger: (call) => {
        calls.push(call);
        return Promise.resolve(call.body?.includes("bad-device") ? answer(500) : told);
      },
    });
    const outcomes = push.push(noticeOf("s&1"), [{ pushId: "bad-device" }, { pushId: "good-device" }]);
    await clock.advance(15_000);
    expect(calls.filter(({ body }) => body?.includes("good-device"))).toHaveLength(1);
    await clock.advance(3_600_000);
    expect(await outcomes).toEqual(["given-up", "sent"]);
    expect(calls).toHaveLength(8);
    expect(counted).toEqual(["phone_notices_sent", "phone_notices_failed"]);
  });

  it.each([400, 401, 403, 404, 302])("are not tried again after %i", async (status) => {
    const calls: ExchangeCall[] = [];
    const push = pusher({ exchanger: scripted(calls, [answer(status, "<html>secrets of the platform</html>")]) });
    expect(await push.push(noticeOf("s&1"), [{ pushId: "device" }])).toEqual(["refused"]);
    await clock.advance(3_600_000);
    expect(calls).toHaveLength(1);
    expect(counted).toEqual(["phone_notices_failed"]);
  });

  it("wait, however many there are, until they are sent or stopped", async () => {
    const push = pusher({ exchanger: async () => told });
    const outcomes = Array.from({ length: 500 }, (_, index) => push.push(noticeOf(`s&${index}`), [{ pushId: "d" }]));
    expect(await outcomes[0]).toEqual(["sent"]);
    push.stop();
    expect(await Promise.all(outcomes.slice(1))).toEqual(Array(499).fill(["stopped"]));
    expect(await push.push(noticeOf("late"), [{ pushId: "d" }])).toEqual(["stopped"]);
    expect(counted).toEqual(["phone_notices_sent"]);
  });

  it("are reported as stopped also if one is being sent, and nothing follows it", async () => {
    let answerIt: (answer: ExchangeAnswer) => void = () => {};
    const calls: ExchangeCall[] = [];
    const push = pusher({
      exchanger: (call) => {
        calls.push(call);
        return new Promise((resolve) => {
          answerIt = resolve;
        });
      },
    });
    const outcomes = push.push(noticeOf("s&1"), [{ pushId: "one" }, { pushId: "two" }]);
    push.stop();
    expect(await outcomes).toEqual(["stopped", "stopped"]);
    answerIt(answer(503));
    await clock.advance(3_600_000);
    expect(calls).toHaveLength(1);
  });

  it("may follow each other closely if so configured, but never on one device", async () => {
    const calls: ExchangeCall[] = [];
    const push = pusher({ spacingMs: 0, exchanger: scripted(calls, [told, told, told]) });
    void push.push(noticeOf("s&1"), [{ pushId: "one" }, { pushId: "two" }]);
    void push.push(noticeOf("s&2"), [{ pushId: "one" }]);
    await clock.advance(14_999);
    expect(calls).toHaveLength(2);
    await clock.advance(1);
    expect(calls).toHaveLength(3);
  });

  it("leave no secret in the log", () => {
    expect(logged.length).toBeGreaterThan(0);
    expect(JSON.stringify(logged)).not.toMatch(/the-secret-key|the-access-key|device|secrets of the platform/);
  });
});

function answer(status: number, body = ""): ExchangeAnswer {
  const none = { async *[Symbol.asyncIterator]() {} };
  return { status, headers: new Headers(), text: () => Promise.resolve(body), chunks: none, cancel() {} };
}

function scripted(
  calls: ExchangeCall[],
  answers: readonly (ExchangeAnswer | CarrierError)[],
): NotificationSenderOptions["exchanger"] {
  return (call) => {
    const next = answers[calls.length];
    calls.push(call);
    return next instanceof CarrierError || next === undefined ? Promise.reject(next) : Promise.resolve(next);
  };
}
