/** Raw requests to the serving side of a dialect, answered by an agent with scripted outcomes. */

import type { AgentCard } from "../../model/card.ts";
import type { Loss } from "../../model/loss.ts";
import type { CallContext, Operation, OutcomeOf, StreamFrame } from "../../model/operation.ts";
import {
  type ExchangeReply,
  type ExchangeRequest,
  type FullReply,
  isStreamReply,
  type StreamReply,
} from "../../wire/exchange.ts";
import type { AgentService, ServeContext } from "../contract.ts";
import { contextOf as joinedContextOf } from "./join.ts";

export const CARD: AgentCard = {
  name: "Echo",
  description: "Says it again.",
  supportedInterfaces: [{ url: "https://agents.example.com", protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  version: "1",
  capabilities: { streaming: true, pushNotifications: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
};

export type Answer = (operation: Operation) => unknown;

interface FakeService extends AgentService {
  readonly asked: { readonly operation: Operation; readonly call: CallContext }[];
}

/** `answer` may throw, like the engine. */
export function createFakeService(answer: Answer, more: Partial<AgentService> = {}): FakeService {
  const asked: FakeService["asked"] = [];
  return {
    name: "echo",
    profile: { ...CARD, inputModes: ["text/plain"], outputModes: ["text/plain"], streaming: true, extensions: [] },
    card: CARD,
    asked,
    async dispatch<O extends Operation>(operation: O, call: CallContext): Promise<OutcomeOf<O>> {
      asked.push({ operation, call });
      return (await answer(operation)) as OutcomeOf<O>;
    },
    activate: (requested) => requested,
    originOf: async () => undefined,
    ...more,
  };
}

export function contextOf(service: AgentService, more: Partial<ServeContext> = {}): ServeContext {
  return { ...joinedContextOf(service), ...more };
}

export function exchangeOf(more: Partial<ExchangeRequest> = {}): ExchangeRequest {
  return {
    method: "POST",
    path: "/",
    query: "",
    headers: {},
    body: Buffer.alloc(0),
    remoteAddress: "127.0.0.1",
    ...more,
  };
}

interface Served {
  readonly reply: ExchangeReply;
  readonly asked: readonly Operation[];
  readonly calls: readonly CallContext[];
  readonly losses: readonly Loss[];
}

export interface ServeOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly push?: boolean;
  readonly report?: (losses: readonly Loss[]) => void;
}

/** Handles one request. */
export async function serveOnce(
  handle: (context: ServeContext) => Promise<ExchangeReply>,
  answer: Answer = () => undefined,
  { push = true, report }: ServeOptions = {},
): Promise<Served> {
  const losses: Loss[] = [];
  const card = { ...CARD, capabilities: { streaming: true, pushNotifications: push } };
  const service = createFakeService(answer, { card });
  const context = contextOf(service, { report: report ?? ((lost) => losses.push(...lost)) });
  const reply = await handle(context);
  const asked = service.asked.map(({ operation }) => operation);
  return { reply, asked, calls: service.asked.map(({ call }) => call), losses };
}

export function full(reply: ExchangeReply): FullReply {
  if (isStreamReply(reply)) throw new Error("A full reply was expected, not a stream.");
  return reply;
}

export function bodyOf(reply: ExchangeReply): unknown {
  return JSON.parse(String(full(reply).body));
}

export function streamed(reply: ExchangeReply): StreamReply {
  if (!isStreamReply(reply)) throw new Error(`A stream was expected, not ${String(reply.body)}`);
  return reply;
}

export async function writesOf(reply: ExchangeReply): Promise<string[]> {
  const writes: string[] = [];
  for await (const write of streamed(reply).frames) writes.push(write);
  return writes;
}

export async function textOf(reply: ExchangeReply): Promise<string> {
  return (await writesOf(reply)).join("");
}

/** The decoded events of a stream, with their ids. */
export async function eventsOf(reply: ExchangeReply): Promise<{ id: string | undefined; data: unknown }[]> {
  const blocks = (await textOf(reply)).split("\n\n").filter((block) => block !== "");
  return blocks.map((block) => ({
    id: /^id: (.*)$/m.exec(block)?.[1],
    data: JSON.parse(/^data: (.*)$/m.exec(block)?.[1] ?? "null"),
  }));
}

export function frame(number: number | undefined, event: StreamFrame["event"]): StreamFrame {
  return { ...(number !== undefined && { number }), event, json: JSON.stringify(event) };
}

/** Yields the batches, then ends or throws. */
export async function* batches(all: readonly (readonly StreamFrame[])[], failure?: Error) {
  yield* all;
  if (failure !== undefined) throw failure;
}
