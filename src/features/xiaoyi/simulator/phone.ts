import type { Fields } from "../../../core/model/json.ts";
import { hexDigits, type Random, uuidFrom } from "./random.ts";
import type { Notification, PushDevice } from "./services/webhook.ts";
import { SimulatedTask, type TaskRules } from "./task/simulated-task.ts";

/** How the platform passes device variables, if the agent's owner enabled them. */
type VariablesForm = "none" | "object" | "list";

/** A phone's id looks like a UUID; that of the desktop app does not. There is no other difference. */
export type DeviceKind = "mobile" | "desktop";

export const dataPart = (data: Fields): Fields => ({ kind: "data", data });

export interface DeviceEvent {
  readonly namespace: string;
  readonly name: string;
  readonly payload: Fields;
}

/** Device events are sent as a message with data parts only. */
const eventPart = ({ name, namespace, payload }: DeviceEvent): Fields =>
  dataPart({ events: [{ header: { namespace, name }, payload }] });

/** An object on devices, a list of objects in the documentation. */
function variableParts({ device, pushId, variables }: Phone): readonly Fields[] {
  if (variables === "none") return [];
  const facts = {
    push_id: pushId,
    device_type: device === "mobile" ? "phone" : "2in1",
    app_ver: "11.4.2.300",
    sdk_api_version: "20",
  };
  const isObject = variables === "object";
  const systemVariables = isObject ? facts : Object.entries(facts).map(([name, value]) => ({ [name]: value }));
  return [dataPart({ variables: { systemVariables } })];
}

interface Sender {
  readonly agentId: string;
  readonly deviceId: string;
  /** New whenever the app is opened. */
  readonly appSessionId: string;
  /** Unchanged until the user clears the context. */
  readonly conversationId: string;
  /** Empty until the user has linked an account. */
  readonly loginSessionId: string;
}

export interface OutgoingMessage {
  readonly sender: Sender;
  readonly requestId: string;
  readonly taskId: string;
  readonly messageId: string;
  readonly parts: readonly Fields[];
}

export interface OutgoingControl {
  readonly kind: "cancel" | "clear";
  readonly sender: Sender;
  readonly requestId: string;
  readonly taskId: string | undefined;
}

/** The state that the agent answered with, or what happened instead of an answer. */
export type ControlResult = "canceled" | "cleared" | "failed" | "unknown" | "error" | "no-answer";

/** Sends a phone's messages to the agent and delivers the agent's responses to the task. */
export interface Channel {
  /** False if no agent is connected. */
  sendMessage(message: OutgoingMessage, task: SimulatedTask): boolean;
  sendControl(control: OutgoingControl): Promise<ControlResult>;
}

export interface UserFile {
  readonly name: string;
  /** As the app reports it; not necessarily a registered type, such as `jpeg`. */
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}

export interface HostedFile extends Omit<UserFile, "bytes"> {
  readonly uri: string;
}

export interface PhoneOptions {
  readonly device?: DeviceKind;
  readonly variables?: VariablesForm;
}

interface PhoneDependencies {
  readonly agentId: string;
  readonly channel: Channel;
  readonly random: Random;
  readonly rules: TaskRules;
  readonly onNotification: (phone: Phone, notification: Notification) => void;
  readonly host: (file: UserFile) => HostedFile;
}

/** The app on one device, with one conversation at a time. */
export class Phone implements PushDevice {
  readonly device: DeviceKind;
  readonly deviceId: string;
  /** Address of notifications for this device. */
  readonly pushId: string;
  readonly notifications: Notification[] = [];
  appSessionId: string;
  conversationId: string;
  loginSessionId = "";
  /** How device variables are sent from now on. */
  variables: VariablesForm;
  /** The newest task: the only one whose channel is open. */
  current: SimulatedTask | undefined;
  readonly #dependencies: PhoneDependencies;
  readonly #turns = new Map<string, number>();

  constructor(dependencies: PhoneDependencies, { device = "mobile", variables = "none" }: PhoneOptions = {}) {
    const { random } = dependencies;
    this.#dependencies = dependencies;
    this.device = device;
    this.deviceId = device === "mobile" ? uuidFrom(random) : `PC_${hexDigits(random, 40)}`;
    this.pushId = hexDigits(random, 32);
    this.variables = variables;
    this.appSessionId = uuidFrom(random);
    this.conversationId = uuidFrom(random);
  }

  get sender(): Sender {
    return {
      agentId: this.#dependencies.agentId,
      deviceId: this.deviceId,
      appSessionId: this.appSessionId,
      conversationId: this.conversationId,
      loginSessionId: this.loginSessionId,
    };
  }

  /**
   * Sends a message. While the agent waits for an answer it goes to the same task with the same ids; otherwise it
   * starts a new task, and an older one that still runs loses its channel.
   */
  say(text: string, files: readonly UserFile[] = []): SimulatedTask {
    const { host } = this.#dependencies;
    const content = text === "" && files.length > 0 ? [] : [{ kind: "text", text }];
    return this.send([...content, ...files.map((file) => ({ kind: "file", file: host(file) }))], text);
  }

  /** Like `say`, with custom parts. */
  send(parts: readonly Fields[], text = ""): SimulatedTask {
    const answered = this.current?.asks === true ? this.current : undefined;
    if (answered === undefined) this.current?.end("superseded");
    else answered.resume();
    const task = answered ?? this.#newTask(text);
    this.current = task;
    this.#deliver(task, [...variableParts(this), ...parts]);
    return task;
  }

  /** Sends a device event. It belongs to the running task, if there is one, and does not count as a turn. */
  report(event: DeviceEvent): SimulatedTask {
    const task = this.current?.isOpen === true ? this.current : this.#newTask("", Number.POSITIVE_INFINITY);
    this.#deliver(task, [eventPart(event)], uuidFrom(this.#dependencies.random));
    return task;
  }

  async cancel(): Promise<ControlResult> {
    const task = this.current;
    const answer = await this.#control("cancel", task?.id);
    if (answer === "canceled") task?.end("canceled");
    return answer;
  }

  /** Clears the conversation, here and at the agent; the next message starts a new one. */
  async clear(): Promise<ControlResult> {
    const answer = this.#control("clear", undefined);
    this.current?.end("superseded");
    this.current = undefined;
    this.conversationId = uuidFrom(this.#dependencies.random);
    return answer;
  }

  /** Closes and reopens the app: a new session, the same conversation. */
  reopen(): void {
    this.appSessionId = uuidFrom(this.#dependencies.random);
    this.current?.reenter();
  }

  notify(notification: Notification): void {
    this.notifications.push(notification);
    this.#dependencies.onNotification(this, notification);
  }

  /** Taps a notification. If it only refers to its content, the agent is asked for it. */
  tap({ pushDataId }: Notification): SimulatedTask | undefined {
    if (pushDataId === undefined) return undefined;
    return this.send([eventPart({ namespace: "Common", name: "Trigger", payload: { dataMap: { pushDataId } } })]);
  }

  #newTask(text: string, silenceMs = this.#dependencies.rules.silenceMs): SimulatedTask {
    const { random, rules } = this.#dependencies;
    const { conversationId } = this;
    const turn = (this.#turns.get(conversationId) ?? 0) + 1;
    this.#turns.set(conversationId, turn);
    const origin = { id: `${conversationId}&${turn}`, conversationId, requestId: uuidFrom(random), userText: text };
    return new SimulatedTask(origin, { ...rules, silenceMs });
  }

  #deliver(task: SimulatedTask, parts: readonly Fields[], requestId = task.requestId): void {
    const { channel, random } = this.#dependencies;
    const message = { sender: this.sender, requestId, taskId: task.id, messageId: uuidFrom(random), parts };
    if (!channel.sendMessage(message, task)) task.end("away");
  }

  #control(what: OutgoingControl["kind"], taskId: string | undefined): Promise<ControlResult> {
    const { channel, random } = this.#dependencies;
    return channel.sendControl({ kind: what, sender: this.sender, requestId: uuidFrom(random), taskId });
  }
}
