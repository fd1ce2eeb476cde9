import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "../../model/ports.ts";
import { type Random, uuidFrom } from "../chance.ts";
import { type Fields, fieldsIn, isFields, listIn, parseFields, textIn } from "../json.ts";
import { type Admission, admit, type RegisteredAgent } from "../link/admission.ts";
import { Misread } from "../task/misread.ts";
import type { Report } from "../violations.ts";
import { fitTitle, type Notification } from "./notification.ts";
import { type Route, readBody, replyJson } from "./web.ts";

export const WEBHOOK_PATH = "/open-ability-agent/v1/agent-webhook";

/** Pushes to one device that come sooner than this after the last one are accepted and forgotten. */
export const PUSH_SPACING_MS = 15_000;

export interface PushDevice {
  notify(notification: Notification): void;
}

export interface WebhookOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly report: Report;
  readonly agents: readonly RegisteredAgent[];
  readonly skewMs: number;
  readonly spacingMs: number;
  /** Some answers of the platform have no body. */
  readonly emptyAnswers: boolean;
  /** The device that would show it, if there is one. */
  readonly deviceOf: (pushId: string) => PushDevice | undefined;
}

interface Push {
  readonly id: string;
  readonly pushId: string;
  readonly notification: Notification;
}

/** Where agents send what their user should hear of later. */
export class Webhook {
  /** Accepted but never shown: too soon after another, or shown before. */
  swallowed = 0;
  readonly #options: WebhookOptions;
  readonly #shownAt = new Map<string, number>();
  readonly #artifacts = new Set<string>();

  constructor(options: WebhookOptions) {
    this.#options = options;
  }

  readonly route: Route = async (request, { pathname }, response) => {
    if (request.method !== "POST" || pathname !== WEBHOOK_PATH) return false;
    const body = (await readBody(request))?.toString("utf8") ?? "";
    const { agents, clock, emptyAnswers, random, report, skewMs } = this.#options;
    const admission = admit(request.headers, { agents, skewMs, now: clock.now() });
    try {
      if ("status" in admission) throw new Misread(admission.why);
      const push = readPush(parseFields(body), request.headers, admission);
      const device = this.#options.deviceOf(push.pushId);
      if (device === undefined) throw new Misread("There is no device with this pushId.");
      this.#deliver(push, device);
      if (emptyAnswers) response.writeHead(200).end();
      else
        replyJson(response, 200, {
          id: push.id,
          resultId: uuidFrom(random),
          result: { code: "0", message: "success" },
        });
    } catch (error) {
      if (!(error instanceof Misread)) throw error;
      const status = "status" in admission ? admission.status : 400;
      report("bad-push", `${status}: ${error.message}`);
      replyJson(response, status, { result: { code: String(status), message: error.message } });
    }
    return true;
  };

  #deliver({ notification, pushId }: Push, device: PushDevice): void {
    const now = this.#options.clock.now();
    const shownAt = this.#shownAt.get(pushId);
    const tooSoon = shownAt !== undefined && now - shownAt < this.#options.spacingMs;
    const seen = `${pushId}/${notification.artifactId}`;
    if (tooSoon || this.#artifacts.has(seen)) {
      this.swallowed++;
      return;
    }
    this.#shownAt.set(pushId, now);
    this.#artifacts.add(seen);
    device.notify(notification);
  }
}

const STATES = ["completed", "canceled", "failed"];
const SILENT_PUSH = 101;

/** Throws `Misread`. */
function readPush(body: Fields | undefined, headers: IncomingHttpHeaders, admission: Admission): Push {
  if (!/^application\/json\b/.test(headers["content-type"] ?? "")) throw new Misread("The content type is not JSON.");
  if (body?.jsonrpc !== "2.0") throw new Misread('The body is no JSON object with jsonrpc "2.0".');
  const result = fieldsIn(body.result);
  const id = required(body, "id");
  required(result, "id");
  const pushId = required(result, "pushId");
  const pushText = required(result, "pushText");
  if ("agent" in admission && admission.agent.apiId !== undefined && result.apiId !== admission.agent.apiId) {
    throw new Misread("apiId is not that of the trigger.");
  }
  if (result.kind !== "task") throw new Misread('result.kind is not "task".');
  if (!STATES.includes(textIn(fieldsIn(result.status).state) ?? ""))
    throw new Misread("result.status.state is no end.");
  const isSilent = result.pushType === SILENT_PUSH;
  if (pushText === "" && !isSilent) throw new Misread("pushText is empty.");
  if (isSilent && !("claw" in admission && admission.claw)) throw new Misread("pushType 101 needs other credentials.");
  return { id, pushId, notification: { ...fitTitle(pushText), ...readArtifact(result.artifacts) } };
}

function required(fields: Fields, name: string): string {
  const value = textIn(fields[name]);
  if (value === undefined) throw new Misread(`${name} is missing.`);
  return value;
}

/** Where text and data come together, the text is all that counts. */
function readArtifact(artifacts: unknown): Pick<Notification, "artifactId" | "directives" | "pushDataId" | "text"> {
  const [artifact] = listIn(artifacts);
  const { artifactId, parts } = fieldsIn(artifact);
  if (typeof artifactId !== "string" || artifactId === "") throw new Misread("artifactId is missing.");
  const all = listIn(parts).map(fieldsIn);
  if (all.length === 0) throw new Misread("The artifact has no parts.");
  const strange = all.find(({ kind }) => kind !== "text" && kind !== "data");
  if (strange !== undefined) throw new Misread(`A part of kind ${JSON.stringify(strange.kind)} cannot be pushed.`);
  const texts = all.filter(({ kind }) => kind === "text").map(({ text }) => textIn(text) ?? "");
  const data = texts.length > 0 ? {} : fieldsIn(all[0]?.data);
  return {
    artifactId,
    text: texts.length === 0 ? undefined : texts.join(""),
    pushDataId: textIn(data.pushDataId),
    directives: listIn(data.directives).filter(isFields),
  };
}
