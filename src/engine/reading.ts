import { invalidParams, ProtocolError, taskNotFound } from "../model/errors.ts";
import { EXTENSIONS } from "../model/extensions.ts";
import type { Call, FrameStream, ListInput, TaskPage } from "../model/operation.ts";
import { isTerminal } from "../model/state.ts";
import type { Task } from "../model/task.ts";
import type { ListQuery, TaskHead } from "../store/contract.ts";
import { LogStream, snapshotFrame } from "./following.ts";
import type { EngineContext } from "./options.ts";
import { fromPageToken, toPageToken } from "./page-token.ts";
import type { Runner, ServedAgent } from "./runner.ts";
import { sameScope, scopeOf } from "./scope.ts";

const DEFAULT_PAGE_SIZE = 50;

/** Looking at tasks, without touching them. */
export class Reading {
  readonly #context: EngineContext;
  readonly #runner: Runner;

  constructor(context: EngineContext, runner: Runner) {
    this.#context = context;
    this.#runner = runner;
  }

  async get(served: ServedAgent, id: string, historyLength: number | undefined, call: Call): Promise<Task> {
    const history = this.#page(historyLength);
    const scope = scopeOf(served, call);
    const live = this.#runner.own(id, scope);
    if (live !== undefined && live.fold.number > 0) return live.fold.toTask({ historyLength: history });
    const snapshot = await this.#context.store.snapshot(id, { history, artifacts: true, scope });
    if (snapshot === undefined) throw taskNotFound(id);
    return snapshot.task;
  }

  /** The caller's own task, or the answer for one that does not exist. */
  async head(served: ServedAgent, id: string, call: Call): Promise<TaskHead> {
    const head = await this.#context.store.head(id);
    if (head === undefined || !sameScope(head, scopeOf(served, call))) throw taskNotFound(id);
    return head;
  }

  async list(served: ServedAgent, input: ListInput, call: Call): Promise<TaskPage> {
    const pageSize = input.pageSize ?? DEFAULT_PAGE_SIZE;
    const question: Omit<ListQuery, "after"> = {
      ...scopeOf(served, call),
      ...(input.contextId === undefined ? undefined : { contextId: input.contextId }),
      ...(input.status === undefined ? undefined : { state: input.status }),
      ...(input.statusTimestampAfter === undefined ? undefined : { since: input.statusTimestampAfter }),
      limit: pageSize,
      maxCharacters: this.#context.limits.page,
      history: this.#page(input.historyLength),
      artifacts: input.includeArtifacts === true,
    };
    const after = input.pageToken === undefined ? undefined : fromPageToken(input.pageToken, question);
    const page = await this.#context.store.list(after === undefined ? question : { ...question, after });
    return {
      tasks: page.tasks,
      nextPageToken: page.next === undefined ? "" : toPageToken(page.next, question),
      pageSize,
      totalSize: page.total,
    };
  }

  async subscribe(
    served: ServedAgent,
    id: string,
    after: number | undefined,
    call: Call,
    onEnd: () => void,
  ): Promise<FrameStream> {
    const head = await this.head(served, id, call);
    const ended = isTerminal(head.status.state);
    if (after === undefined) {
      if (ended) {
        throw new ProtocolError("UNSUPPORTED_OPERATION", "The task has ended; there is nothing to follow.", {
          metadata: { taskId: id },
        });
      }
      return this.#follow(id, undefined, onEnd);
    }
    if (!Number.isSafeInteger(after) || after < 1 || after > head.number) {
      throw invalidParams("Last-Event-ID", "not the number of an event of this task");
    }
    if (after < head.floor) return this.#follow(id, undefined, onEnd);
    if (call.extensions.includes(EXTENSIONS.replay)) {
      const reader = this.#runner.readers.open(id, after);
      return new LogStream(reader, { ended: ended && after === head.number, endOnInputRequired: false, onEnd });
    }
    return this.#follow(id, after, onEnd);
  }

  /** The task as it stands, or stood at a number, and then what follows. */
  async #follow(id: string, at: number | undefined, onEnd: () => void): Promise<FrameStream> {
    const live = at === undefined ? this.#runner.get(id) : undefined;
    if (live !== undefined && live.fold.number > 0) {
      const first = snapshotFrame(live.fold.toTask({ historyLength: this.#page(undefined) }), live.fold.number);
      const reader = this.#runner.readers.open(id, live.fold.number, true);
      return new LogStream(reader, {
        first,
        ended: isTerminal(live.fold.status.state),
        endOnInputRequired: false,
        onEnd,
      });
    }
    const history = this.#page(undefined);
    const options = { history, artifacts: true, ...(at === undefined ? undefined : { at }) };
    const snapshot = await this.#context.store.snapshot(id, options);
    if (snapshot === undefined) throw taskNotFound(id);
    return new LogStream(this.#runner.readers.open(id, snapshot.number), {
      first: snapshotFrame(snapshot.task, snapshot.number),
      ended: isTerminal(snapshot.task.status.state),
      endOnInputRequired: false,
      onEnd,
    });
  }

  #page(historyLength: number | undefined): number {
    const page = this.#context.limits.historyPage;
    return Math.min(historyLength ?? page, page);
  }
}
