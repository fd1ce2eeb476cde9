/** Connects to a chat network to call one of its participants. The carrier is that of a server, without agents. */

import { randomUUID } from "node:crypto";
import type { AgentCaller, CallerOptions } from "../../../core/client/call/agent-caller.ts";
import { joinSignals } from "../../../core/client/call/retry.ts";
import { ConnectionError } from "../../../core/client/errors.ts";
import { type ConnectOptions, DEFAULT_TIMEOUT_MS } from "../../../core/client/options.ts";
import { currentHops } from "../../../core/client/run-hops.ts";
import type { Carrier, CarrierHost, PeerCaller } from "../../../core/dialects/carrier.ts";
import type { DialectTools } from "../../../core/dialects/contract.ts";
import { DialLoop } from "../../../core/dialects/shared/dial-loop.ts";
import type { ConnectedCaller } from "../../../core/extension/contract.ts";
import type { Signal } from "../../../core/model/abort.ts";
import type { AgentCard } from "../../../core/model/card.ts";
import { ProtocolError } from "../../../core/model/errors.ts";
import { fieldsOf } from "../../../core/model/json.ts";
import type { FrameStream, Operation, OutcomeOf, StreamFrame } from "../../../core/model/operation.ts";
import { NO_METER, SILENT_LOG } from "../../../core/model/ports.ts";
import { parseChatAddress } from "../a2a-lite/address.ts";
import { loadChatDialect } from "./load-dialect.ts";
import { createMemoryRecords } from "./memory-records.ts";

type ChatDialect = Awaited<ReturnType<typeof loadChatDialect>>;

/** How long the agent may take to send its card; without one it is called all the same. */
const MAX_CARD_MS = 15_000;

const KEEP_ALIVE_MS = 60_000;

const uniqueId = () => randomUUID();

const TOOLS: DialectTools = {
  clock: {
    now: Date.now,
    after(milliseconds, run) {
      const timer = setTimeout(run, milliseconds);
      timer.unref();
      return () => clearTimeout(timer);
    },
  },
  ids: {
    task: uniqueId,
    context: uniqueId,
    message: uniqueId,
    artifact: uniqueId,
    pushConfig: uniqueId,
    node: uniqueId,
  },
  random: Math.random,
  log: SILENT_LOG,
  meter: NO_METER,
};

/** Rejects with a TypeError if no account is given, and with a ConnectionError if the network cannot be reached. */
export async function connectPeer(
  address: string,
  options: ConnectOptions,
  load: typeof loadChatDialect = loadChatDialect,
): Promise<ConnectedCaller> {
  const dialect = await load();
  const carrier = createCarrier(address, options, dialect);
  // Between two connections nothing else would keep the process running.
  const alive = setInterval(() => {}, KEEP_ALIVE_MS);
  const connection = await open(carrier, address, options.signal).catch((error: unknown) => {
    clearInterval(alive);
    throw error;
  });
  const closing = new AbortController();
  const close = async (): Promise<void> => {
    clearInterval(alive);
    closing.abort();
    carrier.close();
    await connection.stop();
  };
  const peer = carrier.peer?.(address);
  if (peer === undefined) {
    await close();
    throw new TypeError(`connect: ${address} is not an address of a participant.`);
  }
  try {
    const card = await findCard(peer, address, options);
    const chosen = { url: address, binding: dialect.BINDING, version: dialect.VERSION, dialect: dialect.name };
    const signals = [options.signal, closing.signal];
    const caller: AgentCaller = {
      card,
      interface: chosen,
      can: dialect.can,
      recognizesRepeats: false,
      dispatch: (operation, given) =>
        dispatch(peer, operation, options.hops === undefined ? given : { hops: options.hops, ...given }, signals),
    };
    return { caller, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function createCarrier(address: string, { channels = [], timeoutMs }: ConnectOptions, dialect: ChatDialect): Carrier {
  const wanted = parseChatAddress(address);
  if (wanted === undefined) {
    throw new TypeError(`connect: "${address}" must be a2a-lite:<network>/<room>#<participant>.`);
  }
  const network = dialect.networks.find(({ name }) => name === wanted.network);
  if (network === undefined) {
    const names = dialect.networks.map(({ name }) => name).join(", ");
    throw new TypeError(`connect: there is no network "${wanted.network}"; the networks are ${names}.`);
  }
  const accounts = channels.flatMap((entry) => fieldsOf(entry)[network.name] ?? []);
  const parsed = accounts.map((account) => network.settings.safeParse(account));
  const invalid = parsed.flatMap(({ error }) => error?.issues ?? []);
  if (invalid.length > 0) {
    const problems = invalid.map(({ message, path }) => `${[network.name, ...path].map(String).join(".")} ${message}`);
    throw new TypeError(`connect: in channels, ${problems.join("; ")}.`);
  }
  const usable = parsed.find(({ data }) => network.rooms(data)?.includes(wanted.room) ?? true);
  if (usable === undefined) {
    throw new TypeError(`connect: channels must have an account of ${network.title} that is in ${wanted.room}.`);
  }
  const { clock, log } = TOOLS;
  const entry = {
    name: address,
    network: network.name,
    label: network.title,
    agent: "",
    caller: { owner: "", authenticated: false },
    allowPeers: [],
    allowBots: false,
    rooms: network.rooms(usable.data),
    toId: (written: string) => network.toId?.(written) ?? written,
    open: async (how: Parameters<typeof network.open>[1]) => {
      const open = (settings: unknown) => network.open(settings, { ...how, temporary: true }, { clock, log, uniqueId });
      const channel = await open(usable.data);
      const { id } = channel.self;
      if (
        id !== (network.toId?.(wanted.participant) ?? wanted.participant) &&
        network.isOwn?.(usable.data, wanted.participant) !== true
      )
        return channel;
      channel.close();
      await channel.closed;
      if (network.rename !== undefined) return open(network.rename(usable.data, uniqueId().slice(0, 4)));
      throw new TypeError(`the account in use is that of ${wanted.participant} itself; call it with another account.`);
    },
    calls: (tools: Parameters<typeof dialect.createChannelCalls>[0]) => {
      const calls = dialect.createChannelCalls(tools, { answerMs: timeoutMs ?? DEFAULT_TIMEOUT_MS });
      // There is no agent here that others could give work to.
      return { ...calls, take: (received: Parameters<typeof calls.take>[0]) => calls.take(received) || true };
    },
  };
  return dialect.createChannelCarrier(entry, HOST, TOOLS);
}

const HOST: CarrierHost = {
  report() {},
  ids: TOOLS.ids,
  agents: new Map(),
  accepts: false,
  limits: { maxDepth: 64, maxValues: 100_000, maxParts: 1_000, keepAliveMs: 15_000 },
  context() {
    throw new ProtocolError("UNSUPPORTED_OPERATION", "There is no agent here.");
  },
  replies: { put: async () => false },
  records: createMemoryRecords(TOOLS.clock),
};

/** Resolves once the network is connected; later connections are opened whenever one closes. */
async function open(carrier: Carrier, address: string, signal: AbortSignal | undefined): Promise<DialLoop> {
  const [connection] = carrier.open ?? [];
  if (connection === undefined) throw new TypeError(`connect: ${address} has no connection.`);
  let loop: DialLoop | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
      signal?.throwIfAborted();
      const dial = (stop: AbortSignal) => {
        const opening = connection.dial(stop);
        opening.then(() => resolve(), reject);
        return opening;
      };
      loop = new DialLoop({ ...connection, converse: (one) => connection.converse(one), dial }, TOOLS);
    });
  } catch (error) {
    carrier.close();
    await loop?.stop();
    const code = signal?.aborted === true ? "aborted" : "unreachable";
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConnectionError(code, `${address}: ${reason}`, { cause: error });
  }
  return loop as DialLoop;
}

async function findCard(peer: PeerCaller, address: string, options: ConnectOptions): Promise<AgentCard> {
  const { onNotice, signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const late = AbortSignal.timeout(Math.min(timeoutMs, MAX_CARD_MS));
  try {
    const stop = signal === undefined ? late : AbortSignal.any([signal, late]);
    return await peer.dispatch({ kind: "extended-card" }, { signal: stop });
  } catch (error) {
    if (signal?.aborted === true) throw new ConnectionError("aborted", `${address} was aborted by the caller.`);
    if (!ProtocolError.is(error)) throw error;
    onNotice?.({ kind: "fallback", message: `${address} sent no card; it may not support A2A-Lite.` });
    const name = address.slice(address.lastIndexOf("#") + 1);
    return {
      name,
      description: `${name} at ${address}.`,
      version: "1.0.0",
      supportedInterfaces: [],
      capabilities: { streaming: true },
      defaultInputModes: ["text/plain"],
      defaultOutputModes: ["text/plain"],
      skills: [],
    };
  }
}

type Signals = readonly (Signal | undefined)[];

async function dispatch<O extends Operation>(
  peer: PeerCaller,
  operation: O,
  { hops = currentHops(), signal, timeoutMs }: CallerOptions,
  signals: Signals,
): Promise<OutcomeOf<O>> {
  const late = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs);
  const joined = joinSignals([...signals, signal, late]);
  const context = { signal: joined.signal, ...(hops !== undefined && { hops }) };
  let isFollowed = false;
  try {
    const outcome = await peer.dispatch(operation, context);
    if (operation.kind !== "stream" && operation.kind !== "subscribe") return outcome;
    isFollowed = true;
    const stream: FrameStream = follow(outcome as FrameStream, joined);
    return stream as OutcomeOf<O>;
  } catch (error) {
    if (!joined.signal.aborted) throw explainMissing(error, operation.kind);
    const code = late?.aborted === true ? "timeout" : "aborted";
    const message = code === "timeout" ? `No answer within ${timeoutMs} ms.` : "The call was aborted.";
    throw new ConnectionError(code, message, { cause: error });
  } finally {
    if (!isFollowed) joined.release();
  }
}

/** There is no message that asks for a task. */
function explainMissing(error: unknown, kind: Operation["kind"]): unknown {
  if (!ProtocolError.is(error) || error.code !== "TASK_NOT_FOUND" || kind === "cancel") return error;
  const text = "Task not found. In A2A-Lite only the process that sent a task can follow it.";
  return new ProtocolError("TASK_NOT_FOUND", text, { cause: error });
}

/** Ends a pending read when the signal is aborted. */
async function* follow(
  frames: FrameStream,
  { release, signal }: ReturnType<typeof joinSignals>,
): AsyncGenerator<readonly StreamFrame[], undefined, undefined> {
  const reader = frames[Symbol.asyncIterator]();
  const leave = () => void reader.return?.();
  signal.addEventListener("abort", leave, { once: true });
  try {
    if (signal.aborted) leave();
    for (let step = await reader.next(); step.done !== true; step = await reader.next()) yield step.value;
    if (signal.aborted) throw new ConnectionError("aborted", "The call was aborted.");
  } finally {
    release();
    leave();
  }
}
