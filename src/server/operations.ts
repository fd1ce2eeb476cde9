import type { Engine } from "../engine/engine.ts";
import { reasonOf, type TaskStore } from "../store/contract.ts";
import { type ExchangeRequest, type FullReply, jsonReply, NOT_TO_BE_KEPT } from "../wire/exchange.ts";
import type { Authentication } from "./authentication.ts";
import type { Counters } from "./counters.ts";
import type { LinkState } from "./xiaoyi/dial-loop.ts";

export interface OperationsOptions {
  readonly engine: Engine;
  readonly store: TaskStore;
  readonly counters: Counters;
  readonly authentication: Pick<Authentication, "guarded">;
  readonly linkStates: () => readonly LinkState[];
  /** Bytes held for requests that arrive and answers that are not read. */
  readonly buffered: () => { readonly arriving: number; readonly unsent: number };
  readonly isStarting: () => boolean;
}

/** Paths for those who run the server: is it alive, can it work, what has it done. The last is not for everyone. */
export function operationsOf(options: OperationsOptions) {
  const { engine, store, counters, authentication, linkStates, buffered, isStarting } = options;
  const alive = (): FullReply => jsonReply(200, '{"status":"ok"}');
  const ready = async (): Promise<FullReply> => {
    if (isStarting()) return notReady("the server is starting");
    try {
      await store.numbers([]);
      await store.checkWritable?.();
      return jsonReply(200, '{"status":"ready"}');
    } catch (error) {
      return notReady(reasonOf(error));
    }
  };
  const metrics = (): FullReply => {
    const { tasks, queued, streams } = engine.load;
    const links = linkStates();
    const { arriving, unsent } = buffered();
    const body = counters.render({
      tasks_live: { help: "Tasks queued or running here.", value: tasks },
      tasks_queued: { help: "Tasks waiting for their agent.", value: queued },
      streams_open: { help: "Open streams.", value: streams },
      pushes_under_way: { help: "Push notifications under way.", value: engine.pushes },
      xiaoyi_links: { help: "Links to Xiaoyi that are configured.", value: links.length },
      xiaoyi_links_up: {
        help: "Links to Xiaoyi that are open.",
        value: links.filter((state) => state === "up").length,
      },
      arriving_bytes: { help: "Bytes of requests that are on their way in.", value: arriving },
      unsent_bytes: { help: "Bytes of answers that wait to be read.", value: unsent },
      resident_memory_bytes: { help: "Memory of the process.", value: process.memoryUsage.rss() },
    });
    return {
      status: 200,
      headers: { "content-type": "text/plain; version=0.0.4", "cache-control": NOT_TO_BE_KEPT },
      body,
    };
  };
  return new Map<string, (exchange: ExchangeRequest) => FullReply | Promise<FullReply>>([
    ["/healthz", alive],
    ["/readyz", ready],
    ["/metrics", authentication.guarded(metrics)],
  ]);
}

/** Asked by anyone: the reason is one of a few. */
function notReady(reason: string): FullReply {
  return jsonReply(503, JSON.stringify({ status: "not ready", reason }));
}
