import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { usageError } from "../../../core/cli/errors.ts";
import { readChoice, readDuration, readInteger } from "../../../core/cli/flag-values.ts";
import { isObject } from "../../../core/model/json.ts";
import { mediaTypeOfName } from "../../../core/model/media-types.ts";
import { DEFAULT_STYLE, type DeviceEvent, type Simulator, type WireStyle } from "../simulator/index.ts";

export interface PhoneContext {
  readonly simulator: Simulator;
  printAnswer(what: string, answer: string): void;
  wait(): Promise<void>;
  pause(milliseconds: number): Promise<void>;
  show(): void;
}

interface PhoneCommand {
  readonly argument?: string;
  /** What it requires: a reachable agent, or one that has connected by link. */
  readonly needs?: "agent" | "link";
  readonly about: string;
  readonly run: (desk: PhoneContext, argument: string) => void | Promise<void>;
}

const STYLE_VALUES: Readonly<Record<keyof WireStyle, readonly string[]>> = {
  encoding: ["direct", "wrapped", "action"],
  spelling: ["documented", "underscored"],
  controlSession: ["top", "params"],
  cancelNames: ["nothing", "id", "taskId", "params"],
  messageIds: ["given", "left-out"],
};

export const PHONE_COMMANDS: Readonly<Record<string, PhoneCommand>> = {
  send: {
    needs: "agent",
    argument: "TEXT",
    about: "send a message without waiting for its answer",
    run: ({ simulator }, text) => void simulator.phone.say(text),
  },
  wait: { about: "wait for the running task", run: (desk) => desk.wait() },
  cancel: {
    needs: "agent",
    about: "stop the running task",
    run: async (desk) => desk.printAnswer("cancel", await desk.simulator.phone.cancel()),
  },
  clear: {
    needs: "agent",
    about: "forget the conversation",
    run: async (desk) => desk.printAnswer("clear", await desk.simulator.phone.clear()),
  },
  reopen: {
    about: "close the app and open it again",
    run: (desk) => {
      desk.simulator.phone.reopen();
      desk.show();
    },
  },
  file: {
    needs: "agent",
    argument: "PATH [TEXT]",
    about: "send a file, with a text if there is one",
    run: async (desk, argument) => {
      await sendFile(desk.simulator, argument);
      await desk.wait();
    },
  },
  tap: {
    needs: "agent",
    about: "tap the newest notification",
    run: async (desk) => {
      const notification = desk.simulator.phone.notifications.at(-1);
      if (notification === undefined) throw usageError("No notification to tap.");
      if (desk.simulator.phone.tap(notification) !== undefined) await desk.wait();
    },
  },
  event: {
    needs: "agent",
    argument: "NAMESPACE NAME [JSON]",
    about: "report something as the device does, e.g. Common UploadExeResult {}",
    run: ({ simulator }, argument) => void simulator.phone.report(readEvent(argument)),
  },
  variables: {
    argument: "none|object|list",
    about: "send along what is known of the device",
    run: ({ simulator }, form) => {
      simulator.phone.variables = readChoice("The form", form, ["none", "object", "list"]);
    },
  },
  login: {
    about: "bind an account, over HTTP",
    run: async (desk) => {
      const { accounts, cloud, phone } = desk.simulator;
      if (cloud === undefined) throw usageError("Accounts can only be bound over HTTP.");
      phone.loginSessionId = (await cloud.authorize(accounts.issueCode())) ?? "";
      desk.printAnswer("login", phone.loginSessionId === "" ? "refused" : "bound");
    },
  },
  logout: {
    about: "unbind the account",
    run: async (desk) => {
      const { cloud, phone } = desk.simulator;
      if (cloud === undefined) throw usageError("Accounts can only be bound over HTTP.");
      desk.printAnswer("logout", (await cloud.deauthorize(phone.loginSessionId)) ? "done" : "refused");
      phone.loginSessionId = "";
    },
  },
  kick: {
    needs: "link",
    argument: "[CODE]",
    about: "close the connection (default: 1000)",
    run: ({ simulator }, code) =>
      simulator.faults.kick(code === "" ? 1000 : readInteger("The close code", code, 1000, 4999)),
  },
  drop: { needs: "link", about: "close it without a close frame", run: ({ simulator }) => simulator.faults.drop() },
  cut: {
    needs: "link",
    about: "drop the connection; frames in flight are lost",
    run: ({ simulator }) => simulator.faults.cut(),
  },
  freeze: {
    needs: "link",
    about: "keep it open and answer nothing",
    run: ({ simulator }) => simulator.faults.freeze(),
  },
  refuse: {
    needs: "link",
    argument: "[STATUS]",
    about: "refuse new connections with this status; without one, accept them again",
    run: ({ simulator }, status) =>
      simulator.faults.refuse(status === "" ? undefined : readInteger("The status", status, 400, 599)),
  },
  dup: {
    needs: "link",
    argument: "[COPIES]",
    about: "repeat the last frame; with a number, every frame so many times from now on",
    run: ({ simulator }, copies) => {
      if (copies === "") simulator.faults.repeatLast();
      else simulator.faults.duplicate(readInteger("The number of copies", copies, 0, 100));
    },
  },
  reorder: {
    needs: "link",
    argument: "[off]",
    about: "deliver short frames before long ones sent earlier",
    run: ({ simulator }, word) => (word === "off" ? simulator.faults.inOrder() : simulator.faults.reorder()),
  },
  leave: {
    argument: "FRAMES",
    about: "leave the next stream after so many frames, over HTTP",
    run: ({ simulator }, frames) => {
      if (simulator.cloud === undefined) throw usageError("Only HTTP has streams to leave.");
      simulator.cloud.leaveAfter = readInteger("The number of frames", frames, 1, 1e6);
    },
  },
  style: {
    argument: "[NAME=VALUE]",
    about: `how the platform spells things: ${Object.entries(STYLE_VALUES)
      .map(([name, values]) => `${name}=${values.join("|")}`)
      .join(", ")}`,
    run: ({ simulator }, change) => {
      simulator.style = change === "" ? DEFAULT_STYLE : { ...simulator.style, ...readStyle(change) };
    },
  },
  raw: {
    needs: "link",
    argument: "TEXT",
    about: "send this as a frame",
    run: ({ simulator }, text) => simulator.faults.send(text),
  },
  pause: {
    argument: "DURATION",
    about: "do nothing for a while",
    run: (desk, duration) => desk.pause(readDuration("The pause", duration, 0)),
  },
  screen: { about: "show the screen", run: (desk) => desk.show() },
};

export function phoneHelp(): readonly (readonly [string, string])[] {
  const commands = Object.entries(PHONE_COMMANDS).map(
    ([name, { about, argument }]) => [argument === undefined ? `/${name}` : `/${name} ${argument}`, about] as const,
  );
  return [...commands, ["/help", "this list"], ["/quit", "leave"]];
}

/** Phones have their own name for the media type of a photograph. */
const phoneMediaType = (name: string): string => {
  const type = mediaTypeOfName(name) ?? "application/octet-stream";
  return type === "image/jpeg" ? "jpeg" : type;
};

async function sendFile({ phone }: Simulator, argument: string): Promise<void> {
  const [path = "", ...text] = argument.split(" ");
  if (path === "") throw usageError("The path of a file is required.");
  const bytes = await readFile(path).catch(() => {
    throw usageError(`Cannot read ${path}.`);
  });
  phone.say(text.join(" "), [{ name: basename(path), mimeType: phoneMediaType(path), bytes }]);
}

function readEvent(argument: string): DeviceEvent {
  const [, namespace = "", name = "", payload = "{}"] = /^(\S+) (\S+)(?: (.*))?$/.exec(argument) ?? [];
  if (name === "") throw usageError("The namespace and the name of the event are required.");
  try {
    const value: unknown = JSON.parse(payload);
    if (isObject(value)) return { namespace, name, payload: value };
  } catch {
    // Reported below.
  }
  throw usageError("The payload of the event must be a JSON object.");
}

function readStyle(change: string): Partial<WireStyle> {
  const [name = "", value = ""] = change.split("=");
  const values = Object.entries(STYLE_VALUES).find(([known]) => known === name)?.[1];
  if (values?.includes(value) === true) return { [name]: value };
  throw usageError(`Unknown style "${change}"; /help lists all.`);
}
