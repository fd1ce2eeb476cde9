import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import type { Simulator } from "../simulator.ts";
import { artifact, signedHeaders } from "../testing/raw-agent.ts";
import { createStage, rulesOf } from "../testing/stage.ts";
import { truncateTitle } from "./webhook.ts";

const stage = createStage();

const post = (url: string, headers: Record<string, string>, body: unknown) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

let artifacts = 0;

function pushOf({ agent, phone }: Simulator, changes: Fields = {}): Fields {
  artifacts++;
  return {
    jsonrpc: "2.0",
    id: `push-${artifacts}`,
    result: {
      id: `result-${artifacts}`,
      apiId: agent.apiId,
      pushId: phone.pushId,
      pushText: "Your report is there",
      kind: "task",
      artifacts: [{ artifactId: `artifact-${artifacts}`, parts: [{ kind: "text", text: "The report" }] }],
      status: { state: "completed" },
      ...changes,
    },
  };
}

const push = (simulator: Simulator, changes?: Fields, headers?: Record<string, string>) =>
  post(simulator.webhookUrl, headers ?? signedHeaders(simulator.agent, stage.clock.now()), pushOf(simulator, changes));

const parts = (...list: readonly Fields[]) => ({ artifacts: [{ artifactId: `own-${list.length}`, parts: list }] });

describe("a push", () => {
  test("is answered and shown", async () => {
    const simulator = await stage.simulate();
    const body = pushOf(simulator);
    const answer = await post(simulator.webhookUrl, signedHeaders(simulator.agent, stage.clock.now()), body);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      id: body.id,
      resultId: expect.any(String),
      result: { code: "0", message: "success" },
    });
    expect(simulator.phone.notifications).toMatchObject([
      { title: "Your report is there", cut: false, text: "The report", pushDataId: undefined },
    ]);
    expect(simulator.violations).toEqual([]);
  });

  test("may be answered with nothing", async () => {
    const simulator = await stage.simulate({ emptyPushAnswers: true });
    const answer = await push(simulator);
    expect([answer.status, await answer.text()]).toEqual([200, ""]);
  });

  test("takes user id and API key as well, and only with them a silent command", async () => {
    const simulator = await stage.simulate();
    const { apiKey = "", uid = "" } = simulator.agent;
    const headers = { "x-uid": uid, "x-api-key": apiKey, "x-request-from": "openclaw" };
    const silent = { pushType: 101, pushText: "", ...parts({ kind: "data", data: { directives: [{ go: 1 }] } }) };
    expect((await push(simulator, silent)).status).toBe(400);
    expect((await push(simulator, silent, headers)).status).toBe(200);
    expect(simulator.phone.notifications).toMatchObject([{ title: "", directives: [{ go: 1 }] }]);
  });

  test.each<[string, number, Fields]>([
    ["a file", 400, parts({ kind: "file", file: {} })],
    ["no parts", 400, parts()],
    ["no artifact", 400, { artifacts: [] }],
    ["no text for the bar", 400, { pushText: "" }],
    ["another trigger", 400, { apiId: "x" }],
    ["an unknown device", 400, { pushId: "x" }],
    ["a task that goes on", 400, { status: { state: "working" } }],
    ["another kind", 400, { kind: "message" }],
    ["no id", 400, { id: undefined }],
  ])("with %s is refused with %i", async (_what, status, changes) => {
    const simulator = await stage.simulate();
    expect((await push(simulator, changes)).status).toBe(status);
    expect(rulesOf(simulator)).toEqual(["bad-push"]);
    expect(simulator.phone.notifications).toEqual([]);
  });

  test("needs a signature, JSON and a body", async () => {
    const simulator = await stage.simulate();
    const headers = signedHeaders(simulator.agent, stage.clock.now());
    expect((await push(simulator, {}, {})).status).toBe(401);
    expect((await push(simulator, {}, { ...headers, "x-sign": "x" })).status).toBe(401);
    expect((await push(simulator, {}, { ...headers, "content-type": "text/plain" })).status).toBe(400);
    expect((await post(simulator.webhookUrl, headers, "no")).status).toBe(400);
    expect((await fetch(simulator.webhookUrl)).status).toBe(404);
  });

  test("that comes within 15 seconds of another is swallowed", async () => {
    const simulator = await stage.simulate();
    const seen: number[] = [];
    for (const wait of [0, 10_000, 4_999, 1]) {
      await stage.clock.advance(wait);
      expect((await push(simulator)).status).toBe(200);
      seen.push(simulator.phone.notifications.length);
    }
    expect(seen).toEqual([1, 1, 1, 2]);
    expect(simulator.webhook.swallowed).toBe(2);
    const other = simulator.addPhone();
    await push(simulator, { pushId: other.pushId });
    expect(other.notifications).toHaveLength(1);
  });

  test("of an artifact that was shown is not shown again", async () => {
    const simulator = await stage.simulate();
    for (let time = 0; time < 2; time++) {
      expect((await push(simulator, parts({ kind: "text", text: "x" }))).status).toBe(200);
      await stage.clock.advance(20_000);
    }
    expect(simulator.phone.notifications).toHaveLength(1);
  });

  test("with text and data is text", async () => {
    const simulator = await stage.simulate();
    await push(simulator, parts({ kind: "data", data: { pushDataId: "d" } }, { kind: "text", text: "x" }));
    expect(simulator.phone.notifications).toMatchObject([{ text: "x", pushDataId: undefined }]);
    const [notification] = simulator.phone.notifications;
    expect(notification && simulator.phone.tap(notification)).toBeUndefined();
  });

  test("with data has the agent asked for the rest when it is tapped", async () => {
    const simulator = await stage.simulate();
    const agent = await stage.join(simulator);
    await push(simulator, parts({ kind: "data", data: { pushDataId: "report-7" } }));
    const [notification] = simulator.phone.notifications;
    const task = notification && simulator.phone.tap(notification);
    const request = await agent.next();
    expect(fieldsOf(request.params)).toMatchObject({
      id: task?.id,
      message: {
        parts: [
          {
            kind: "data",
            data: {
              events: [
                { header: { namespace: "Common", name: "Trigger" }, payload: { dataMap: { pushDataId: "report-7" } } },
              ],
            },
          },
        ],
      },
    });
    agent.respond(request, artifact("a", "The whole report", { final: true }));
    await task?.waitUntilSettled();
    expect(task?.screen().text).toBe("The whole report");
    expect(simulator.violations).toEqual([]);
  });

  test.each([
    ["a".repeat(84), 84, false],
    ["a".repeat(85), 84, true],
    ["中".repeat(57), 57, false],
    ["中".repeat(58), 57, true],
    [`${"a".repeat(42)}${"中".repeat(28)}`, 70, false],
    [`${"a".repeat(42)}${"中".repeat(29)}`, 70, true],
  ])("has a title with room for 84 Latin or 57 Chinese characters: %s", (text, length, cut) => {
    const fitted = truncateTitle(text);
    expect([[...fitted.title].length, fitted.cut]).toEqual([length, cut]);
  });
});

describe("an upload", () => {
  const BYTES = Buffer.from("a report");
  const announced = (uid: string | undefined): Fields => ({
    objectType: "TEMPORARY_MATERIAL_DOC",
    fileName: "report.txt",
    fileSha256: createHash("sha256").update(BYTES).digest("hex"),
    fileSize: BYTES.byteLength,
    fileOwnerInfo: { uid, teamId: uid },
    useEdge: false,
  });

  async function prepare() {
    const simulator = await stage.simulate();
    const { apiKey = "", uid = "" } = simulator.agent;
    const headers = { "x-uid": uid, "x-api-key": apiKey, "x-request-from": "openclaw" };
    const step = (name: string, body: Fields) =>
      post(`${simulator.origin}/osms/v1/file/manager/${name}`, headers, body);
    const prepared = (await (await step("prepare", announced(uid))).json()) as {
      readonly code: string;
      readonly objectId: string;
      readonly draftId: string;
      readonly uploadInfos: readonly {
        readonly url: string;
        readonly method: string;
        readonly headers: Record<string, string>;
      }[];
    };
    const [target] = prepared.uploadInfos;
    if (target === undefined) throw new Error("nowhere to send it");
    const send = (body: Buffer, also = target.headers) =>
      fetch(target.url, { method: target.method, headers: also, body });
    return { simulator, step, send, prepared, ids: { objectId: prepared.objectId, draftId: prepared.draftId } };
  }

  test("is prepared, sent and completed, and can then be named", async () => {
    const { ids, prepared, send, simulator, step } = await prepare();
    expect(prepared.code).toBe("0");
    expect((await send(BYTES)).status).toBe(200);
    expect(simulator.uploads.has(ids.objectId)).toBe(false);
    expect(await (await step("complete", ids)).json()).toEqual({ code: "0", desc: "success" });
    expect(simulator.uploads.bytes(ids.objectId)).toEqual(BYTES);
    const agent = await stage.join(simulator);
    const task = simulator.phone.say("the report, please");
    const file = { name: "report.txt", mimeType: "text/plain", fileId: ids.objectId };
    const more = { append: true, artifact: { artifactId: task.id, parts: [{ kind: "file", file }] } };
    agent.respond(await agent.next(), artifact("a", "", { ...more, final: true }));
    await task.waitUntilSettled();
    expect(task.screen().files).toEqual([{ name: "report.txt", mimeType: "text/plain", shown: true }]);
    expect(simulator.violations).toEqual([]);
  });

  test("can be asked for its address in the same step", async () => {
    const { ids, send, step } = await prepare();
    await send(BYTES);
    const answer = (await (await step("completeAndQuery", ids)).json()) as {
      readonly fileDetailInfo: { readonly url: string };
    };
    expect(await (await fetch(answer.fileDetailInfo.url)).text()).toBe("a report");
  });

  test("that is not what was announced is refused", async () => {
    const { ids, prepared, send, simulator, step } = await prepare();
    expect((await step("complete", ids)).status).toBe(400);
    expect((await send(Buffer.from("a repord"))).status).toBe(400);
    expect((await send(Buffer.from("a longer report"))).status).toBe(400);
    expect((await send(BYTES, {})).status).toBe(400);
    expect((await step("complete", { ...ids, draftId: "x" })).status).toBe(400);
    expect((await step("abandon", ids)).status).toBe(400);
    expect((await step("prepare", { ...announced(simulator.agent.uid), objectType: "x" })).status).toBe(400);
    expect((await step("prepare", { ...announced("somebody") })).status).toBe(400);
    expect((await step("prepare", { ...announced(simulator.agent.uid), fileSize: "8" })).status).toBe(400);
    expect((await fetch(prepared.uploadInfos[0]?.url ?? "")).status).toBe(404);
    expect(new Set(rulesOf(simulator))).toEqual(new Set(["bad-upload"]));
  });

  test("cannot be had with a signature", async () => {
    const { ids, simulator } = await prepare();
    const headers = signedHeaders(simulator.agent, stage.clock.now());
    const answer = await post(`${simulator.origin}/osms/v1/file/manager/complete`, headers, ids);
    expect(answer.status).toBe(400);
    expect(simulator.violations.at(-1)?.detail).toContain("x-uid");
  });
});

test("the account service exchanges a code once", async () => {
  const simulator = await stage.simulate();
  const exchange = (code: string) =>
    fetch(simulator.accountTokenUrl, {
      method: "POST",
      body: new URLSearchParams({ grant_type: "authorization_code", code }),
    });
  const code = simulator.accounts.issueCode();
  expect(await (await exchange(code)).json()).toMatchObject({ token_type: "Bearer", open_id: expect.any(String) });
  expect((await exchange(code)).status).toBe(400);
});
