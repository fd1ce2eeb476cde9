/** Both sides of one dialect, connected without a socket. */
import { ANONYMOUS } from "../../model/caller.ts";
import type { AgentCard } from "../../model/card.ts";
import type { Loss } from "../../model/loss.ts";
import type { FrameStream, Operation, OperationKind, OutcomeOf, StreamFrame } from "../../model/operation.ts";
import { NO_METER, SILENT_LOG } from "../../model/ports.ts";
import { NO_CLOCK } from "../../model/testing/no-clock.ts";
import type { Closure } from "../../wire/connection.ts";
import { type ExchangeCall, type ExchangeReply, type ExchangeRequest, isStreamReply } from "../../wire/exchange.ts";
import { parseJsonRpc } from "../../wire/json-rpc.ts";
import type { Link } from "../../wire/link.ts";
import { RpcStatusError } from "../../wire/rpc.ts";
import { readSseEvents } from "../../wire/sse.ts";
import { createLinkPair } from "../../wire/testing/link-pair.ts";
import type { CarrierHost } from "../carrier.ts";
import type {
  AgentEndpoint,
  AgentService,
  Calling,
  CallTarget,
  CodecTools,
  Dialect,
  ExchangeCalling,
  LinkCalling,
  LinkTools,
  RpcCalling,
  RpcServing,
  ServeContext,
} from "../contract.ts";

const BASE = "https://agent.example/base";

export const CARD: AgentCard = {
  name: "Agent",
  description: "Does as told.",
  version: "1.0.0",
  supportedInterfaces: [{ url: BASE, protocolBinding: "JSONRPC", protocolVersion: "1.0" }],
  capabilities: { streaming: true },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
};

export interface ScriptedService extends AgentService {
  readonly asked: Operation[];
  /** Decides the next outcomes; may throw. */
  answer: (operation: Operation) => unknown;
}

export function createScriptedService(): ScriptedService {
  const asked: Operation[] = [];
  const service: ScriptedService = {
    name: "agent",
    card: CARD,
    profile: { ...CARD, inputModes: [], outputModes: [], streaming: true, extensions: [] },
    asked,
    answer: () => {
      throw new Error("The service was not told what to answer.");
    },
    async dispatch<O extends Operation>(operation: O): Promise<OutcomeOf<O>> {
      asked.push(operation);
      return (await service.answer(operation)) as OutcomeOf<O>;
    },
    activate: (requested) => requested,
    originOf: async () => undefined,
  };
  return service;
}

export function contextOf(service: AgentService, losses: Loss[] = []): ServeContext {
  return {
    ...toolsOf(losses),
    service,
    caller: ANONYMOUS,
    limits: { maxDepth: 64, maxValues: 200_000, maxParts: 1_000, keepAliveMs: 60_000 },
    agentOfTenant: () => undefined,
  };
}

/** Sequential ids, and a list of reported losses. */
export function toolsOf(losses: Loss[] = []): CodecTools {
  let made = 0;
  const next = () => `id-${++made}`;
  return { report: (lost) => losses.push(...lost), ids: { message: next, context: next } };
}

/** No timeouts: when a link closes, every pending request fails. */
export function linkToolsOf(losses: Loss[] = []): LinkTools {
  return { ...toolsOf(losses), clock: NO_CLOCK, log: SILENT_LOG, meter: NO_METER, connectMs: 0, patienceMs: 0 };
}

/** A caller whose requests reach the service through the dialect's own serving side. */
export interface Joined {
  ask<O extends Operation>(operation: O): Promise<OutcomeOf<O>>;
  /** Losses reported by the codecs of both sides. */
  readonly losses: Loss[];
  close(): Promise<void>;
}

export function join(dialect: Dialect, calling: Calling, service: AgentService): Joined {
  if (calling.carrier === "link") return joinLink(dialect, calling, service);
  if (calling.carrier === "rpc") return joinRpc(dialect, calling, service);
  return joinExchange(dialect, calling, service);
}

export function nameOf(calling: Calling): string {
  return calling.carrier === "link" ? "link" : calling.binding;
}

function joinLink(dialect: Dialect, calling: LinkCalling, service: AgentService): Joined {
  const [near, far] = createLinkPair();
  const losses: Loss[] = [];
  const served = serveLink(dialect, contextOf(service, losses), far);
  const caller = calling.open(linkToolsOf(losses));
  void caller.attach(near);
  return {
    ask: (operation) => caller.dispatch(operation, {}),
    losses,
    async close() {
      near.close();
      await served;
    },
  };
}

/** Serves a link with the dialect's first carrier, whichever side would dial it. */
export async function serveLink({ name, serving }: Dialect, context: ServeContext, link: Link): Promise<Closure> {
  const { ids, limits, report, service } = context;
  const host: CarrierHost = {
    ids,
    limits,
    report,
    agents: new Map([[service.name, service]]),
    accepts: true,
    context: () => context,
    replies: { put: async () => true },
    records: NO_RECORDS,
  };
  const [carrier] = (await serving.carriers?.(host)) ?? [];
  const conversation = carrier?.open?.[0] ?? carrier?.accept?.admit({ headers: {}, baseUrl: undefined });
  if (conversation === undefined || "status" in conversation) throw new Error(`${name} does not serve links.`);
  return conversation.converse(link);
}

const PLACE: AgentEndpoint = { base: BASE, rpc: "agent.example:4001", name: "agent", isDefault: true };

/** The address in the card; a dialect that is not in any card is called at the base URL. */
function targetOf({ serving }: Dialect, binding: string): CallTarget {
  const offered = serving.interfaces?.(PLACE).find(({ protocolBinding }) => protocolBinding === binding);
  return { url: offered?.url ?? BASE, tenant: undefined, headers: {}, extensions: [] };
}

function joinRpc(dialect: Dialect, calling: RpcCalling, service: AgentService): Joined {
  const { rpc } = dialect.serving;
  if (rpc === undefined) throw new Error(`${dialect.name} calls over gRPC but does not serve it.`);
  const losses: Loss[] = [];
  const target = targetOf(dialect, calling.binding);

  async function ask(operation: Operation): Promise<unknown> {
    const encoded = calling.encode(operation, target);
    losses.push(...encoded.losses);
    const request = { ...encoded.value, remoteAddress: undefined };
    const reply = await (rpc as RpcServing).handle(request, contextOf(service, losses));
    if (reply.kind === "failure") throw calling.decodeFailure(reply.status, operation.kind);
    if (reply.kind === "stream") return framesOfMessages(reply.messages, calling, losses);
    const decoded = calling.decode(operation.kind as Exclude<OperationKind, "stream" | "subscribe">, reply.message);
    losses.push(...decoded.losses);
    return decoded.value;
  }

  return { ask: (operation) => ask(operation) as Promise<never>, losses, close: async () => {} };
}

async function* framesOfMessages(
  messages: AsyncIterable<readonly Uint8Array[]>,
  calling: RpcCalling,
  losses: Loss[],
): FrameStreamOf {
  try {
    for await (const batch of messages) {
      const frames: StreamFrame[] = [];
      for (const message of batch) {
        const decoded = calling.decodeFrame(message);
        losses.push(...decoded.losses);
        frames.push(decoded.value as StreamFrame);
      }
      yield frames;
    }
  } catch (error) {
    throw error instanceof RpcStatusError ? calling.decodeFailure(error.status) : error;
  }
}

function joinExchange(dialect: Dialect, calling: ExchangeCalling, service: AgentService): Joined {
  const losses: Loss[] = [];
  const target = targetOf(dialect, calling.binding);

  async function ask(operation: Operation): Promise<unknown> {
    const encoded = calling.encode(operation, target);
    losses.push(...encoded.losses);
    const reply = await serveExchange(dialect, toRequest(encoded.value), contextOf(service, losses));
    if ((operation.kind === "stream" || operation.kind === "subscribe") && isStreamReply(reply)) {
      return framesOf(reply.frames, calling, operation, losses);
    }
    const whole = isStreamReply(reply) ? await joined(reply.frames) : String(reply.body ?? "");
    const kind = operation.kind === "stream" || operation.kind === "subscribe" ? "send" : operation.kind;
    const answer = { status: reply.status, contentType: reply.headers["content-type"] ?? "", text: whole };
    const decoded = calling.decode(kind, answer, operation);
    losses.push(...decoded.losses);
    return decoded.value;
  }

  return { ask: (operation) => ask(operation) as Promise<never>, losses, close: async () => {} };
}

function toRequest(call: ExchangeCall): ExchangeRequest {
  const [path = "", query = ""] = call.url.slice(BASE.length).split("?");
  return {
    method: call.method,
    path,
    query,
    headers: call.headers,
    body: Buffer.from(call.body ?? ""),
    remoteAddress: undefined,
  };
}

/** Routes like the server: by the longest path prefix, else as JSON-RPC. */
async function serveExchange(
  { serving }: Dialect,
  exchange: ExchangeRequest,
  context: ServeContext,
): Promise<ExchangeReply> {
  const fitting = (serving.http ?? [])
    .filter(({ prefix }) => exchange.path === `/${prefix}` || exchange.path.startsWith(`/${prefix}/`))
    .sort((one, other) => other.prefix.length - one.prefix.length);
  const [http] = fitting;
  if (http !== undefined) {
    const below = { ...exchange, path: exchange.path.slice(http.prefix.length + 1) };
    if (http.screen === undefined) return http.handle(below, context);
    return http.handle(below, context, (check) => ({ ...check(exchange.body), exchange: below }));
  }
  if (serving.jsonRpc === undefined) throw new Error("There is nothing at this path.");
  const parsed = parseJsonRpc(exchange.body, context.limits);
  if (!parsed.ok) throw new Error(parsed.message);
  return serving.jsonRpc.handle(parsed.request, exchange, context);
}

async function* framesOf(
  frames: AsyncIterable<string>,
  calling: ExchangeCalling,
  asked: Operation,
  losses: Loss[],
): FrameStreamOf {
  async function* bytes() {
    for await (const text of frames) yield Buffer.from(text);
  }
  const decoder = calling.openFrames?.(asked);
  for await (const events of readSseEvents(bytes())) {
    const batch: StreamFrame[] = [];
    for (const { data, event, lastEventId } of events) {
      const received = { data, event, id: lastEventId };
      if (decoder === undefined) {
        const decoded = calling.decodeFrame(received);
        losses.push(...decoded.losses);
        batch.push(decoded.value as StreamFrame);
      } else {
        const decoded = decoder.decode(received);
        losses.push(...decoded.losses);
        batch.push(...decoded.value);
      }
    }
    yield batch;
  }
  yield decoder?.end?.() ?? [];
}

type FrameStreamOf = AsyncGenerator<readonly StreamFrame[], void, undefined>;

async function joined(frames: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const batch of frames) text += batch;
  return text;
}

export async function allFrames(stream: FrameStream): Promise<StreamFrame[]> {
  const frames: StreamFrame[] = [];
  for await (const batch of stream) frames.push(...batch);
  return frames;
}

const NO_RECORDS: CarrierHost["records"] = {
  record: async () => undefined,
  records: async () => [],
  put: async () => true,
  update: async () => {},
  delete: async () => {},
};
