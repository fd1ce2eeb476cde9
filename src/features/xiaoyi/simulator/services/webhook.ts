import type { IncomingHttpHeaders } from "node:http";
import { type Fields, fieldsOf, isObject, listOf } from "../../../../core/model/json.ts";
import type { Clock } from "../../../../core/model/ports.ts";
import { type AuthenticationResult, authenticate, type RegisteredAgent } from "../authentication.ts";
import { type Route, readBody, replyJson } from "../http-server.ts";
import { DecodeError, parseObject, textOf } from "../json.ts";
import type { PlatformTraits } from "../options.ts";
import { type Random, uuidFrom } from "../random.ts";
import type { Report } from "../violations.ts";

/** An entry of the notification bar. It does not change the open chat. */
export interface Notification {
  readonly artifactId: string;
  readonly title: string;
  readonly cut: boolean;
  readonly text: string | undefined;
  /** Refers to content that the agent is asked for when the notification is tapped. */
  readonly pushDataId: string | undefined;
  /** Commands for the device, executed silently. */
  readonly directives: readonly Fields[];
}

const MAX_LATIN_CHARACTERS = 84;
const MAX_WIDE_CHARACTERS = 57;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\u{20000}-\u{3fffd}]/u;

/** Truncates to three lines of the bar: 84 Latin or 57 Chinese characters, or a mixture. */
export function truncateTitle(text: string): { readonly title: string; readonly cut: boolean } {
  const characters = [...text];
  let room = 1;
  for (const [index, character] of characters.entries()) {
    room -= 1 / (WIDE.test(character) ? MAX_WIDE_CHARACTERS : MAX_LATIN_CHARACTERS);
    if (room < -1e-9) return { title: characters.slice(0, index).join(""), cut: true };
  }
  return { title: text, cut: false };
}

export const WEBHOOK_PATH = "/open-ability-agent/v1/agent-webhook";

/** Pushes to one device within this time after the last one are accepted and dropped. */
export const PUSH_SPACING_MS = 15_000;

export interface PushDevice {
  notify(notification: Notification): void;
}

interface WebhookOptions extends Pick<PlatformTraits, "skewMs" | "pushSpacingMs" | "emptyPushAnswers"> {
  readonly clock: Clock;
  readonly random: Random;
  readonly report: Report;
  readonly agents: readonly RegisteredAgent[];
  /** The device that would show the notification, if there is one. */
  readonly deviceOf: (pushId: string) => PushDevice | undefined;
}

interface Push {
  readonly id: string;
  readonly pushId: string;
  readonly notification: Notification;
}

export class Webhook {
  /** Accepted but never shown: too soon after another, or a duplicate. */
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
    const { agents, clock, emptyPushAnswers, random, report, skewMs } = this.#options;
    const admission = authenticate(request.headers, { agents, skewMs, now: clock.now() });
    try {
      if ("status" in admission) throw new DecodeError(admission.reason);
      const push = decodePush(parseObject(body), request.headers, admission);
      const device = this.#options.deviceOf(push.pushId);
      if (device === undefined) throw new DecodeError("There is no device with this pushId.");
      this.#deliver(push, device);
      if (emptyPushAnswers) response.writeHead(200).end();
      else
        replyJson(response, 200, {
          id: push.id,
          resultId: uuidFrom(random),
          result: { code: "0", message: "success" },
        });
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      const status = "status" in admission ? admission.status : 400;
      report("bad-push", `${status}: ${error.message}`);
      replyJson(response, status, { result: { code: String(status), message: error.message } });
    }
    return true;
  };

  #deliver({ notification, pushId }: Push, device: PushDevice): void {
    const now = this.#options.clock.now();
    const shownAt = this.#shownAt.get(pushId);
    const tooSoon = shownAt !== undefined && now - shownAt < this.#options.pushSpacingMs;
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

/** Throws `DecodeError`. */
function decodePush(body: Fields | undefined, headers: IncomingHttpHeaders, admission: AuthenticationResult): Push {
  if (!/^application\/json\b/.test(headers["content-type"] ?? ""))
    throw new DecodeError("The content type is not JSON.");
  if (body?.jsonrpc !== "2.0") throw new DecodeError('The body is not a JSON object with jsonrpc "2.0".');
  const result = fieldsOf(body.result);
  const id = required(body, "id");
  required(result, "id");
  const pushId = required(result, "pushId");
  const pushText = required(result, "pushText");
  if ("agent" in admission && admission.agent.apiId !== undefined && result.apiId !== admission.agent.apiId) {
    throw new DecodeError("apiId is not that of the trigger.");
  }
  if (result.kind !== "task") throw new DecodeError('result.kind is not "task".');
  if (!STATES.includes(textOf(fieldsOf(result.status).state) ?? ""))
    throw new DecodeError("result.status.state is not terminal.");
  const isSilent = result.pushType === SILENT_PUSH;
  if (pushText === "" && !isSilent) throw new DecodeError("pushText is empty.");
  if (isSilent && !("claw" in admission && admission.claw))
    throw new DecodeError("pushType 101 needs other credentials.");
  return { id, pushId, notification: { ...truncateTitle(pushText), ...decodeArtifact(result.artifacts) } };
}

function required(fields: Fields, name: string): string {
  const value = textOf(fields[name]);
  if (value === undefined) throw new DecodeError(`${name} is missing.`);
  return value;
}

/** If an artifact has text and data, only the text counts. */
function decodeArtifact(artifacts: unknown): Pick<Notification, "artifactId" | "directives" | "pushDataId" | "text"> {
  const [artifact] = listOf(artifacts);
  const { artifactId, parts } = fieldsOf(artifact);
  if (typeof artifactId !== "string" || artifactId === "") throw new DecodeError("artifactId is missing.");
  const all = listOf(parts).map(fieldsOf);
  if (all.length === 0) throw new DecodeError("The artifact has no parts.");
  const strange = all.find(({ kind }) => kind !== "text" && kind !== "data");
  if (strange !== undefined) throw new DecodeError(`A part of kind ${JSON.stringify(strange.kind)} cannot be pushed.`);
  const texts = all.filter(({ kind }) => kind === "text").map(({ text }) => textOf(text) ?? "");
  const data = texts.length > 0 ? {} : fieldsOf(all[0]?.data);
  return {
    artifactId,
    text: texts.length === 0 ? undefined : texts.join(""),
    pushDataId: textOf(data.pushDataId),
    directives: listOf(data.directives).filter(isObject),
  };
}
