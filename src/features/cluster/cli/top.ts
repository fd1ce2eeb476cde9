import { setTimeout as pause } from "node:timers/promises";
import { type StoreFlags, withStore } from "../../../core/cli/commands/store.ts";
import { CommandError } from "../../../core/cli/errors.ts";
import { readDuration } from "../../../core/cli/flag-values.ts";
import { type Output, printResult } from "../../../core/cli/output.ts";
import type { StoreStats, TaskStore } from "../../../core/store/contract.ts";
import { createRates, renderCluster, type ShownNode } from "./render.ts";

export interface TopFlags extends StoreFlags {
  readonly interval: string;
  readonly once?: boolean;
}

/** The cluster at one moment. */
interface View {
  readonly nodes: readonly ShownNode[];
  readonly stats: StoreStats;
}

/** Shows the nodes of a cluster until it is interrupted; where there is no terminal, once. */
export async function top(output: Output, flags: TopFlags): Promise<void> {
  const intervalMs = readDuration("--interval", flags.interval, 100);
  await withStore(flags, "inspect", async (store) => {
    const look = createLook(store);
    const draw = ({ nodes, stats }: View, isTerminal: boolean) =>
      renderCluster(nodes, stats, isTerminal ? output.columns : undefined);
    let view = await look();
    if (flags.output === "json" || flags.once === true || !output.canShowStatus) {
      const shown = await lookUntilReported(look, view, intervalMs);
      printResult(output, flags.output, toJson(shown), () => draw(shown, output.stdoutIsTerminal));
      return;
    }
    const stopped = new AbortController();
    const stop = () => stopped.abort();
    process.once("SIGINT", stop).once("SIGTERM", stop);
    while (!stopped.signal.aborted) {
      output.status(draw(view, true).trimEnd());
      await pause(intervalMs, undefined, { signal: stopped.signal }).catch(() => {});
      view = await look().catch((error: unknown) => {
        output.info(`Error: ${error instanceof Error ? error.message : String(error)}`);
        return view;
      });
    }
    output.status(undefined);
    output.write(draw(view, output.stdoutIsTerminal));
  });
}

function createLook(store: TaskStore): () => Promise<View> {
  const withRates = createRates();
  return async () => {
    if (store.nodes === undefined) {
      throw new CommandError(
        "DRAGOMAN_ERR_NO_CLUSTER",
        `One process owns ${store.description}: there are no other nodes.`,
        "dragoman store stats shows what is in it; /metrics of the server shows what it does.",
      );
    }
    const [nodes, stats] = await Promise.all([store.nodes(), store.stats()]);
    return { nodes: nodes.map(withRates), stats };
  };
}

/** Rates are known when every node has reported once more. One that does not is dead when its lease has ended. */
async function lookUntilReported(look: () => Promise<View>, first: View, intervalMs: number): Promise<View> {
  const reported = new Map(first.nodes.map(({ id, beatAt, report }) => [id, report && beatAt]));
  for (;;) {
    await pause(intervalMs);
    const view = await look();
    if (!view.nodes.some(({ alive, beatAt, id }) => alive && reported.get(id) === beatAt)) return view;
  }
}

function toJson({ nodes, stats }: View) {
  return {
    ...stats,
    nodes: nodes.map(({ beatAt: _beatAt, left: _left, rates, report, ...known }) => ({
      ...known,
      ...report,
      commitsPerSecond: rates?.commitsPerSecond ?? 0,
      eventsPerSecond: rates?.eventsPerSecond ?? 0,
      commitMs: rates?.commitMs ?? null,
    })),
  };
}
