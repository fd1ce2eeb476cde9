import { hexDigits, type Random, uuidFrom } from "../chance.ts";
import type { Fields } from "../json.ts";
import type { Notification } from "../services/notification.ts";
import type { PushDevice } from "../services/webhook.ts";
import { SimulatedTask, type TaskRules } from "../task/simulated-task.ts";
import type { Channel, ControlAnswer, OutgoingControl, Sender } from "./channel.ts";
import {
  type DeviceEvent,
  type DeviceKind,
  eventPart,
  filePart,
  textPart,
  triggerEvent,
  type VariablesForm,
  variableParts,
} from "./parts.ts";

export interface UserFile {
  readonly name: string;
  /** As the app says it, which need not be a registered type: `jpeg` is one. */
  readonly mimeType: string;
  readonly bytes: Uint8Array;
}

export interface PhoneOptions {
  readonly device?: DeviceKind;
  readonly variables?: VariablesForm;
}

/** What a phone stands on; the same for all phones of a simulator. */
export interface PhoneSurroundings {
  readonly agentId: string;
  readonly channel: Channel;
  readonly random: Random;
  readonly rules: TaskRules;
  readonly onNotification: (phone: Phone, notification: Notification) => void;
  readonly host: (file: UserFile) => { readonly name: string; readonly mimeType: string; readonly uri: string };
}

/** The app on one device, with one conversation at a time. */
export class Phone implements PushDevice {
  readonly device: DeviceKind;
  readonly deviceId: string;
  /** Where notifications for this device are sent. */
  readonly pushId: string;
  readonly notifications: Notification[] = [];
  appSessionId: string;
  conversationId: string;
  loginSessionId = "";
  /** How the device's variables are sent along from now on. */
  variables: VariablesForm;
  /** The newest task: the only one whose channel is open. */
  current: SimulatedTask | undefined;
  readonly #surroundings: PhoneSurroundings;
  /** Messages of each conversation. */
  readonly #turns = new Map<string, number>();

  constructor(surroundings: PhoneSurroundings, { device = "mobile", variables = "none" }: PhoneOptions = {}) {
    const { random } = surroundings;
    this.#surroundings = surroundings;
    this.device = device;
    this.deviceId = device === "mobile" ? uuidFrom(random) : `PC_${hexDigits(random, 40)}`;
    this.pushId = hexDigits(random, 32);
    this.variables = variables;
    this.appSessionId = uuidFrom(random);
    this.conversationId = uuidFrom(random);
  }

  get sender(): Sender {
    return {
      agentId: this.#surroundings.agentId,
      deviceId: this.deviceId,
      appSessionId: this.appSessionId,
      conversationId: this.conversationId,
      loginSessionId: this.loginSessionId,
    };
  }

  /**
   * Sends a message. While the agent waits for an answer it goes to the same task under the same ids; else it begins a
   * new task, and an older one that still runs has lost its channel.
   */
  say(text: string, files: readonly UserFile[] = []): SimulatedTask {
    const { host } = this.#surroundings;
    const content = text === "" && files.length > 0 ? [] : [textPart(text)];
    return this.send([...content, ...files.map((file) => filePart(host(file)))], text);
  }

  /** As `say`, with parts of the caller's own making. */
  send(parts: readonly Fields[], said = ""): SimulatedTask {
    const answered = this.current?.asks === true ? this.current : undefined;
    if (answered === undefined) this.current?.end("superseded");
    else answered.resume();
    const task = answered ?? this.#newTask(said);
    this.current = task;
    this.#deliver(task, [...variableParts(this.variables, { pushId: this.pushId, kind: this.device }), ...parts]);
    return task;
  }

  /** The device reports something by itself. It belongs to the running task, if there is one, and takes no turn. */
  report(event: DeviceEvent): SimulatedTask {
    const task = this.current?.isOpen === true ? this.current : this.#newTask("", Number.POSITIVE_INFINITY);
    this.#deliver(task, [eventPart(event)], uuidFrom(this.#surroundings.random));
    return task;
  }

  /** Asks the agent to stop the running task. */
  async cancel(): Promise<ControlAnswer> {
    const task = this.current;
    const answer = await this.#control("cancel", task?.id);
    if (answer === "canceled") task?.end("canceled");
    return answer;
  }

  /** Forgets the conversation, here and at the agent; the next message begins another one. */
  async clear(): Promise<ControlAnswer> {
    const answer = this.#control("clear", undefined);
    this.current?.end("superseded");
    this.current = undefined;
    this.conversationId = uuidFrom(this.#surroundings.random);
    return answer;
  }

  /** Closes the app and opens it again: another session, the same conversation. */
  reopen(): void {
    this.appSessionId = uuidFrom(this.#surroundings.random);
    this.current?.reenter();
  }

  notify(notification: Notification): void {
    this.notifications.push(notification);
    this.#surroundings.onNotification(this, notification);
  }

  /** Taps a notification. One that only names its content has the agent asked for it. */
  tap({ pushDataId }: Notification): SimulatedTask | undefined {
    return pushDataId === undefined ? undefined : this.send([eventPart(triggerEvent(pushDataId))]);
  }

  #newTask(said: string, silenceMs = this.#surroundings.rules.silenceMs): SimulatedTask {
    const { random, rules } = this.#surroundings;
    const { conversationId } = this;
    const turn = (this.#turns.get(conversationId) ?? 0) + 1;
    this.#turns.set(conversationId, turn);
    const origin = { id: `${conversationId}&${turn}`, conversationId, requestId: uuidFrom(random), said };
    return new SimulatedTask(origin, { ...rules, silenceMs });
  }

  #deliver(task: SimulatedTask, parts: readonly Fields[], requestId = task.requestId): void {
    const { channel, random } = this.#surroundings;
    const message = { sender: this.sender, requestId, taskId: task.id, messageId: uuidFrom(random), parts };
    if (!channel.message(message, task)) task.end("away");
  }

  #control(what: OutgoingControl["what"], taskId: string | undefined): Promise<ControlAnswer> {
    const { channel, random } = this.#surroundings;
    return channel.control({ what, sender: this.sender, requestId: uuidFrom(random), taskId });
  }
}
