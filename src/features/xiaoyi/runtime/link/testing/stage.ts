/** An agent on a link, backed by an engine, with the platform driven by the test. */
import type { Agent } from "../../../../../core/engine/agent.ts";
import { type FakeClock, settle } from "../../../../../core/engine/testing/fake-clock.ts";
import { Harness } from "../../../../../core/engine/testing/harness.ts";
import type { Caller } from "../../../../../core/model/caller.ts";
import type { Loss } from "../../../../../core/model/loss.ts";
import type { Log } from "../../../../../core/model/ports.ts";
import { ServedAgentService } from "../../../../../core/server/agent-service.ts";
import { uuidIds } from "../../../../../core/server/clock-and-ids.ts";
import type { Link } from "../../../../../core/wire/link.ts";
import { createLinkPair } from "../../../../../core/wire/testing/link-pair.ts";
import { NOTIFICATION_ROUTE, RecordedNotifications } from "../../../codec/testing/recorded-notifications.ts";
import { ANSWER_DELIVERY } from "../../ports.ts";
import { createFileUploads, type UploadFile } from "../../upload.ts";
import { LinkAgent } from "../bind-link.ts";
import type { LinkAgentOptions } from "../options.ts";

export const AGENT_ID = "agent-1";
const OWNER: Caller = { owner: "alice", authenticated: true };
export const ROUTE = `link:${AGENT_ID}`;

interface StageOptions
  extends Partial<
    Pick<LinkAgentOptions, "agentId" | "cleared" | "intake" | "language" | "mode" | "notifications" | "times">
  > {
  readonly agent: Agent;
  readonly upload?: UploadFile;
  /** The stage of an earlier process. */
  readonly after?: Stage;
  readonly limits?: { readonly maxDepth: number; readonly maxParts: number };
}

function routeOf({ agentId = AGENT_ID }: StageOptions): string {
  return `link:${agentId}`;
}

interface Logged {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/** Ids differ between the stages of a test, as those of processes do. */
let made = 0;

export class Stage {
  readonly harness: Harness;
  readonly agent: LinkAgent;
  readonly logged: Logged[] = [];
  readonly losses: Loss[] = [];
  /** Ends the deliveries of answers. */
  endRoute = async (): Promise<void> => {};

  private constructor(harness: Harness, options: StageOptions) {
    this.harness = harness;
    const log = this.#log();
    const service = new ServedAgentService({
      name: "agent",
      engine: harness.engine,
      ids: uuidIds,
      clock: harness.clock,
      log,
      interfaces: () => [],
      authentication: {
        identifies: true,
        security: { schemes: {}, requirements: [] },
        challenged: (error) => error,
      },
    });
    const next = (prefix: string) => () => `${prefix}-${++made}`;
    this.agent = new LinkAgent({
      agentId: options.agentId ?? AGENT_ID,
      servers: ["main", "backup"],
      replies: {
        route: routeOf(options),
        put: ({ record, scope }, reply) =>
          harness.engine.replies.put(scope, record.taskId, { ...reply, dialect: "xiaoyi-link" }),
      },
      context: {
        caller: OWNER,
        ids: { message: next("message"), context: next("context") },
        limits: { maxDepth: 64, maxValues: 200_000, maxParts: 100, keepAliveMs: 60_000, ...options.limits },
        report: (losses) => this.losses.push(...losses),
        service,
      },
      artifactId: next("artifact"),
      clock: harness.clock,
      log,
      mode: options.mode ?? "phone",
      language: options.language ?? "en",
      // Most tests do not depend on time, and would all have to advance it.
      times: { finalAfterMs: 0, ...options.times },
      prepare: options.upload && createFileUploads(options.upload, log),
      cleared: options.cleared,
      intake: options.intake,
      notifications: options.notifications,
    });
  }

  static async open(options: StageOptions): Promise<Stage> {
    const after = options.after?.harness;
    const harness = await Harness.start({ agent: options.agent, ...(after === undefined ? undefined : { after }) });
    const stage = new Stage(harness, options);
    await stage.agent.load();
    stage.endRoute = harness.engine.serveRoute({
      route: routeOf(options),
      deliver: (delivery) => stage.agent.deliver(delivery),
    });
    const { notifications } = options;
    if (notifications instanceof RecordedNotifications) {
      harness.engine.serveRoute({ route: NOTIFICATION_ROUTE, deliver: (delivery) => notifications.deliver(delivery) });
    }
    await settle();
    return stage;
  }

  /** The route by which the answer of a task is still owed. */
  async owed(taskId: string): Promise<string | undefined> {
    return (await this.harness.memory.delivery(taskId, "replies", ANSWER_DELIVERY))?.delivery.route;
  }

  get clock(): FakeClock {
    return this.harness.clock;
  }

  /** The platform's end of a new link. */
  connect(server = "main"): Platform {
    const [near, far] = createLinkPair();
    const platform = new Platform(far);
    platform.served = this.agent.serve(near, server);
    return platform;
  }

  #log(): Log {
    const at = (level: Logged["level"]) => (fields: Logged["fields"], message: string) =>
      void this.logged.push({ level, fields, message });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }
}

type Fields = Readonly<Record<string, unknown>>;

/** An answer as the platform decodes it: the envelope and its content. */
interface Answer {
  readonly sessionId: string;
  readonly taskId: string;
  readonly detail: {
    readonly id: unknown;
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
    readonly result: any;
    readonly error: { readonly code: number; readonly message: string };
  };
}

class Platform {
  /** Every received frame, unchanged. */
  readonly raw: string[] = [];
  served: Promise<unknown> = Promise.resolve();
  readonly #link: Link;
  /** Resolves when the platform reads again. */
  #awake: Promise<void> = Promise.resolve();

  constructor(link: Link) {
    this.#link = link;
    void this.#listen();
  }

  async #listen(): Promise<void> {
    for await (const text of this.#link.messages) {
      this.raw.push(text);
      await this.#awake;
    }
  }

  /** Stops reading: frames sent from now on stay in flight forever. */
  sleep(): void {
    this.#awake = new Promise(() => {});
  }

  send(frame: unknown): void {
    void this.#link.send(typeof frame === "string" ? frame : JSON.stringify(frame));
  }

  /** Sends a frame and waits until all immediate effects have happened. */
  async say(frame: unknown): Promise<void> {
    this.send(frame);
    await settle(20);
  }

  close(code?: number): Promise<unknown> {
    this.#link.close(code);
    return this.served;
  }

  /** The link is lost. */
  tear(): Promise<unknown> {
    return this.close(1006);
  }

  get frames(): Fields[] {
    return this.raw.map((text) => JSON.parse(text) as Fields);
  }

  get answers(): Answer[] {
    return this.frames.flatMap(({ msgDetail, msgType, sessionId, taskId }) =>
      msgType === "agent_response"
        ? [{ sessionId: String(sessionId), taskId: String(taskId), detail: JSON.parse(String(msgDetail)) }]
        : [],
    );
  }

  /** A summary of one task: states, texts and reasoning in order, `final` marked. */
  story(taskId: string): string[] {
    return this.answers
      .filter(({ detail, taskId: named }) => named === taskId && detail.result?.kind !== undefined)
      .map(({ detail }) => toStory(detail.result));
  }
}

function toStory(result: Answer["detail"]["result"]): string {
  const mark = result.final === true ? " final" : "";
  if (result.kind === "status-update") {
    const statusText = result.status.message?.parts.map((part: { text: string }) => part.text).join("");
    return `${result.status.state}${statusText === undefined ? "" : `: ${statusText}`}${mark}`;
  }
  const how = result.append ? "+" : "=";
  const [part] = result.artifact.parts;
  const what = part.text ?? (part.kind === "reasoningText" ? `(${part.reasoningText})` : JSON.stringify(part));
  return `${how}${what}${mark}`;
}

let requests = 0;

interface MessageWords {
  readonly id?: string;
  readonly taskId?: string;
  readonly sessionId?: string;
  readonly appSessionId?: string;
  readonly deviceId?: string;
  readonly parts?: readonly unknown[];
}

/** A message as the platform sends it, without an envelope. */
export function message(text: string, fields: MessageWords = {}): Fields {
  const { sessionId = "session-1" } = fields;
  return {
    jsonrpc: "2.0",
    id: fields.id ?? `request-${++requests}`,
    method: "message/stream",
    agentId: AGENT_ID,
    deviceId: fields.deviceId ?? "7d0f8a44-0a6f-4b8e-9b0d-0e1c5c6f9f10",
    conversationId: sessionId,
    sessionId: fields.appSessionId ?? "app-1",
    params: {
      id: fields.taskId ?? `task-of-${requests}`,
      sessionId,
      agentLoginSessionId: "",
      message: { role: "user", parts: fields.parts ?? [{ kind: "text", text }] },
    },
  };
}
