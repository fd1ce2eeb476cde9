/** Transports with scripted results, and an agent that is called with them. */

import { can } from "../../dialects/a2a-v1/index.ts";
import type { Abilities, Dialect, ExchangeCalling } from "../../dialects/contract.ts";
import type { AgentCard } from "../../model/card.ts";
import type { StreamEvent } from "../../model/event.ts";
import type { Operation, OperationKind, StreamFrame } from "../../model/operation.ts";
import { createAgentCaller } from "../call/agent-caller.ts";
import { Endpoints } from "../call/failover.ts";
import { createRemoteAgent } from "../call/remote-agent.ts";
import type { Candidate } from "../card/choose-interface.ts";
import type { Notice, RemoteAgent } from "../options.ts";
import type { Attempt, FrameReader, Transport } from "../transport/transport.ts";
import { cardOf } from "./fake-agent.ts";

/** Outcomes or streams of events, by operation; a failure is returned as is. */
export type Script = (operation: Operation) => Attempt<unknown>;

interface Scripted {
  readonly agent: RemoteAgent;
  /** `name kind` of every attempt. */
  readonly tried: string[];
  readonly notices: Notice[];
}

interface ScriptedLine {
  readonly name: string;
  readonly script: Script;
  readonly lacks?: readonly OperationKind[];
}

export function scriptedAgent(lines: readonly [ScriptedLine, ...ScriptedLine[]]): Scripted {
  const tried: string[] = [];
  const notices: Notice[] = [];
  const notify = (notice: Notice): void => void notices.push(notice);
  const [first, ...others] = lines.map(candidateOf);
  const transportOf = ({ interface: { binding } }: Candidate): Transport => {
    const line = lines.find(({ name }) => name === binding);
    const run = async (operation: Operation): Promise<Attempt<never>> => {
      tried.push(`${binding} ${operation.kind}`);
      return line?.script(operation) as Attempt<never>;
    };
    return { attempt: run, open: run };
  };
  const pace = { baseMs: 1, capMs: 2 };
  const setup = {
    endpoints: new Endpoints([first as Candidate, ...others], transportOf, notify),
    requestRetry: { attempts: 3, ...pace },
    streamRetry: { attempts: 5, ...pace },
    polling: pace,
    notify,
  };
  const card = cardOf("https://x.example") as AgentCard;
  return { agent: createRemoteAgent(createAgentCaller({ card, setup, signal: undefined })), tried, notices };
}

function candidateOf({ lacks = [], name }: ScriptedLine): Candidate {
  const operations = Object.fromEntries(
    Object.keys(can.operations).map((kind) => [kind, !lacks.includes(kind as OperationKind)]),
  ) as Abilities["operations"];
  const dialect: Dialect = { name, can: { ...can, operations }, losses: [], serving: {}, calling: [] };
  const calling = { carrier: "exchange", binding: name, version: "1.0" } as ExchangeCalling;
  return {
    dialect,
    calling,
    interface: { url: `https://${name}.example`, binding: name, version: "1.0", dialect: name },
  };
}

export function streamOf(...events: readonly StreamEvent[]): Attempt<FrameReader> {
  async function* frames() {
    yield events.map((event): StreamFrame => ({ event, json: JSON.stringify(event) }));
  }
  return { ok: true, value: { frames: frames(), awaitFirst: async () => undefined, cancel() {}, closeWithin() {} } };
}
