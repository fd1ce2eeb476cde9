import type { IncomingMessage } from "node:http";
import { type Fields, fieldsOf } from "../../../../core/model/json.ts";
import type { Clock } from "../../../../core/model/ports.ts";
import { DecodeError, parseObject, textOf } from "../json.ts";
import { DEFAULT_STYLE, messageParams, type WireStyle } from "../link/wire-format.ts";
import { type Channel, type ControlResult, dataPart, type OutgoingControl, type OutgoingMessage } from "../phone.ts";
import { type Random, uuidFrom } from "../random.ts";
import { decodeControlResult, decodeResponse, echoesId } from "../task/decode-response.ts";
import type { SimulatedTask } from "../task/simulated-task.ts";
import type { Report } from "../violations.ts";
import { AgentSessions, type CloudCredentials, type CredentialParams, createCredentialSource } from "./credentials.ts";
import { contentTypeOf, describeStatus, post, readText, receiveStream } from "./http-client.ts";

export interface CloudOptions {
  /** The agent's only endpoint, as entered in the console. */
  readonly url: string;
  readonly credentials: CloudCredentials;
  /** `session` sends the credentials once and a session id afterwards; `stateless` sends them with every request. */
  readonly mode?: "session" | "stateless";
  readonly sessions?: number;
  /** Sends the session id with a trailing space, as printed in the documentation. */
  readonly trailingSpace?: boolean;
}

interface CloudDependencies {
  readonly clock: Clock;
  readonly random: Random;
  readonly report: Report;
  readonly controlPatienceMs: number;
}

/** The platform as a client of agents that have an address: one endpoint, JSON-RPC, streams for messages. */
export class CloudPlatform implements Channel {
  style: WireStyle = DEFAULT_STYLE;
  /** Disconnects from the next stream after this many frames. */
  leaveAfter: number | undefined;
  /** How often a session was reopened because the agent rejected the id it had issued. */
  reopenedSessions = 0;
  readonly #options: CloudOptions;
  readonly #dependencies: CloudDependencies;
  readonly #nextCredentials: () => Promise<CredentialParams>;
  readonly #sessions: AgentSessions;

  constructor(options: CloudOptions, dependencies: CloudDependencies) {
    const { clock, report } = dependencies;
    this.#options = options;
    this.#dependencies = dependencies;
    this.#nextCredentials = createCredentialSource(options.credentials, clock);
    this.#sessions = new AgentSessions(options.sessions ?? 1, clock, report, () => this.#initialize());
  }

  get sessionIds(): readonly string[] {
    return this.#sessions.ids;
  }

  sendMessage(message: OutgoingMessage, task: SimulatedTask): boolean {
    void this.#stream(message, task);
    return true;
  }

  sendControl(control: OutgoingControl): Promise<ControlResult> {
    const { clock, controlPatienceMs } = this.#dependencies;
    return new Promise((resolve) => {
      const stop = clock.after(controlPatienceMs, () => resolve("no-answer"));
      void this.#control(control).then(resolve).finally(stop);
    });
  }

  async #control(control: OutgoingControl): Promise<ControlResult> {
    const { requestId, sender, taskId, kind } = control;
    const { controlSession } = this.style;
    const session = { sessionId: sender.conversationId };
    const request = {
      jsonrpc: "2.0",
      id: requestId,
      method: kind === "cancel" ? "tasks/cancel" : "clearContext",
      ...(controlSession === "top" ? session : { params: kind === "cancel" ? { ...session, id: taskId } : session }),
    };
    try {
      return decodeControlResult(await this.#ask(request), control);
    } catch (error) {
      this.#report(error, "wrong-control-answer", taskId);
      return "error";
    }
  }

  /**
   * The user links an account; the agent may exchange the code for the user's identity. Undefined if the agent refused.
   */
  async authorize(authCode: string): Promise<string | undefined> {
    const result = await this.#accountCall("authorize", { authCode });
    const id = textOf(result?.agentLoginSessionId);
    if (result !== undefined && id === undefined)
      this.#dependencies.report("bad-response", "agentLoginSessionId is missing.");
    return id;
  }

  async deauthorize(agentLoginSessionId: string): Promise<boolean> {
    return (await this.#accountCall("deauthorize", { agentLoginSessionId })) !== undefined;
  }

  async #accountCall(method: string, data: Fields): Promise<Fields | undefined> {
    const message = { role: "user", parts: [dataPart(data)] };
    const request = { jsonrpc: "2.0", id: uuidFrom(this.#dependencies.random), method, params: { message } };
    try {
      const result = await this.#ask(request);
      if (result.version !== "1.0") throw new DecodeError(`version of the answer to ${method} is not "1.0".`);
      return result;
    } catch (error) {
      this.#report(error, "bad-response");
      return undefined;
    }
  }

  async #stream(message: OutgoingMessage, task: SimulatedTask): Promise<void> {
    const { requestId: id } = message;
    const leaveAfter = this.leaveAfter;
    this.leaveAfter = undefined;
    try {
      const request = { jsonrpc: "2.0", id, method: "message/stream", params: messageParams(message, this.style) };
      const answer = await this.#call(request, "text/event-stream");
      await receiveStream(answer, task, { id, report: this.#dependencies.report, leaveAfter });
    } catch (error) {
      this.#report(error, "bad-response", task.id);
      task.end("broken");
    }
  }

  /** Exchanges the credentials for a session id and confirms its receipt. */
  async #initialize(): Promise<Fields> {
    const { random, report } = this.#dependencies;
    const request = { jsonrpc: "2.0", id: uuidFrom(random), method: "initialize" };
    const result = await this.#readResult(
      await this.#post(request, await this.#nextCredentials(), JSON_TYPE),
      request.id,
    );
    const sessionId = textOf(result.agentSessionId);
    if (sessionId === undefined) return result;
    const arrived = { jsonrpc: "2.0", id: uuidFrom(random), method: "notifications/initialized" };
    const answer = await this.#post(arrived, this.#sessionProof(sessionId), JSON_TYPE);
    if (answer.statusCode !== 200)
      report("http-status", `notifications/initialized was answered with ${answer.statusCode}.`);
    if ((await readText(answer)) !== "") report("not-empty", "");
    return result;
  }

  async #ask(request: Request): Promise<Fields> {
    return this.#readResult(await this.#call(request, JSON_TYPE), request.id);
  }

  /** Throws `DecodeError` if the body is not a JSON-RPC result. */
  async #readResult(answer: IncomingMessage, id: string): Promise<Fields> {
    const text = await readText(answer);
    if (answer.statusCode !== 200) {
      const refusal = describeStatus(answer, text);
      this.#dependencies.report("http-status", refusal);
      throw new Refused(refusal);
    }
    if (contentTypeOf(answer) !== JSON_TYPE)
      this.#dependencies.report("wrong-content-type", `It was ${contentTypeOf(answer)}.`);
    const value = parseObject(text);
    if (value === undefined) throw new DecodeError("The answer holds no JSON object.");
    const response = decodeResponse(value);
    if (!echoesId(response, id)) this.#dependencies.report("id-not-echoed", "");
    if (response.kind === "error") throw new Refused(response.error.message);
    if (response.kind === "update") throw new DecodeError("An update came in place of an answer.");
    return fieldsOf(response.result);
  }

  async #call(request: Request, accept: string): Promise<IncomingMessage> {
    if (this.#options.mode === "stateless") return this.#post(request, await this.#nextCredentials(), accept);
    const { id, slot } = await this.#sessions.acquire();
    const answer = await this.#post(request, this.#sessionProof(id), accept);
    if (answer.statusCode !== 401) return answer;
    answer.resume();
    this.reopenedSessions++;
    this.#sessions.forget(slot, id);
    return this.#post(request, this.#sessionProof(await this.#sessions.reopen(slot)), accept);
  }

  #sessionProof(id: string): CredentialParams {
    return { headers: { "agent-session-id": this.#options.trailingSpace === true ? `${id} ` : id }, query: {} };
  }

  #post(request: Request, { headers, query }: CredentialParams, accept: string): Promise<IncomingMessage> {
    const url = new URL(this.#options.url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return post({ url, headers: { "content-type": JSON_TYPE, accept, ...headers }, body: JSON.stringify(request) });
  }

  #report(error: unknown, rule: "bad-response" | "wrong-control-answer", taskId?: string): void {
    if (error instanceof Refused) return;
    const { report } = this.#dependencies;
    if (error instanceof DecodeError) report(rule, error.message, taskId);
    else
      report(
        "http-status",
        `The agent cannot be reached: ${error instanceof Error ? error.message : String(error)}`,
        taskId,
      );
  }
}

const JSON_TYPE = "application/json";

interface Request extends Fields {
  readonly id: string;
}

/** The agent answered with an error, which is allowed, or with a status other than 200, which has been reported. */
class Refused extends Error {
  override readonly name = "Refused";
}
