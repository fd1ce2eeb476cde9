import { createHash } from "node:crypto";
import { invalidParams, ProtocolError, taskNotFound } from "../../model/errors.ts";
import { EXTENSIONS } from "../../model/extensions.ts";
import type { CallContext, FrameStream, ListInput, TaskPage } from "../../model/operation.ts";
import { isTerminal, type Task } from "../../model/task.ts";
import type { ListPosition, ListQuery, Scope, TaskHead } from "../../store/contract.ts";
import type { ServedAgent } from "../concurrency.ts";
import type { EngineContext } from "../options.ts";
import { isSameScope, toScope } from "../request-identity.ts";
import type { Runner } from "../runs/runner.ts";
import { LogStream, toSnapshotFrame } from "../tasks/log-stream.ts";

const DEFAULT_PAGE_SIZE = 50;

/** Looking at tasks, without touching them. */
export class TaskQueries {
  readonly #context: EngineContext;
  readonly #runner: Runner;

  constructor(context: EngineContext, runner: Runner) {
    this.#context = context;
    this.#runner = runner;
  }

  async get(served: ServedAgent, id: string, historyLength: number | undefined, call: CallContext): Promise<Task> {
    const scope = toScope(served, call);
    const live = this.#runner.tasks.findInScope(id, scope);
    if (live !== undefined && live.fold.number > 0) return live.toTask(historyLength);
    const history = this.#page(historyLength);
    const snapshot = await this.#context.store.snapshot(id, { history, artifacts: true, scope });
    if (snapshot === undefined) throw taskNotFound(id);
    return snapshot.task;
  }

  /** The caller's own task, or the answer for one that does not exist. */
  async head(served: ServedAgent, id: string, call: CallContext): Promise<TaskHead> {
    const head = await this.#context.store.head(id);
    if (head === undefined || !isSameScope(head, toScope(served, call))) throw taskNotFound(id);
    return head;
  }

  async list(served: ServedAgent, input: ListInput, call: CallContext): Promise<TaskPage> {
    const pageSize = input.pageSize ?? DEFAULT_PAGE_SIZE;
    const { agent, tenant, owner } = toScope(served, call);
    // Without spreads, each of which would cost as much as the rest of a short list.
    const question: Omit<ListQuery, "after"> = {
      agent,
      tenant,
      owner,
      contextId: input.contextId,
      state: input.status,
      since: input.statusTimestampAfter,
      limit: pageSize,
      maxCharacters: this.#context.limits.page,
      history: this.#page(input.historyLength),
      artifacts: input.includeArtifacts === true,
      firstPageOnly: input.firstPageOnly === true,
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
    call: CallContext,
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
      const first = toSnapshotFrame(live.toTask(undefined), live.fold.number);
      const reader = this.#runner.readers.open(id, live.fold.number, true);
      return new LogStream(reader, {
        first,
        ended: isTerminal(live.fold.status.state),
        endOnInputRequired: false,
        onEnd,
      });
    }
    const history = this.#page(undefined);
    const snapshot = await this.#context.store.snapshot(id, { history, artifacts: true, at });
    if (snapshot === undefined) throw taskNotFound(id);
    return new LogStream(this.#runner.readers.open(id, snapshot.number), {
      first: toSnapshotFrame(snapshot.task, snapshot.number),
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

/**
 * Page tokens are opaque to callers: a position in the order, bound to the query it belongs to. A token of another
 * query or another caller is refused, as is one in the form of earlier versions, whose view was a number.
 */
function toPageToken(position: ListPosition, query: Omit<ListQuery, "after">): string {
  return toToken([position.timestamp, position.id, position.view, digestQuery(query)]);
}

function fromPageToken(token: string, query: Omit<ListQuery, "after">): ListPosition {
  const [timestamp, id, view, binding] = fromToken(token, 4);
  if (typeof timestamp !== "number" || typeof id !== "string" || typeof view !== "string") throw invalidToken();
  if (binding !== digestQuery(query)) throw invalidToken();
  return { timestamp, id, view };
}

/** Of a list of one task's push configs, which is in the order of creation. */
export function toPushPageToken(place: number, scope: Scope, taskId: string): string {
  return toToken([place, digestPushQuery(scope, taskId)]);
}

export function fromPushPageToken(token: string, scope: Scope, taskId: string): number {
  const [place, binding] = fromToken(token, 2);
  if (!Number.isSafeInteger(place) || binding !== digestPushQuery(scope, taskId)) throw invalidToken();
  return place as number;
}

function toToken(place: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(place)).toString("base64url");
}

function fromToken(token: string, length: number): readonly unknown[] {
  const place = parseToken(token);
  if (!Array.isArray(place) || place.length !== length) throw invalidToken();
  return place;
}

function parseToken(token: string): unknown {
  try {
    return JSON.parse(Buffer.from(token, "base64url").toString("utf8"));
  } catch {
    throw invalidToken();
  }
}

function digestQuery(query: Omit<ListQuery, "after">): string {
  const { agent, tenant, owner, contextId, state, since } = query;
  return digest([agent, tenant, owner, contextId, state, since]);
}

function digestPushQuery({ agent, tenant, owner }: Scope, taskId: string): string {
  return digest(["push", agent, tenant, owner, taskId]);
}

function digest(question: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(question)).digest("base64url").slice(0, 12);
}

const invalidToken = () => invalidParams("pageToken", "not a token of this list");
