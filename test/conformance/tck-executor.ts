/** The behaviours conformance checks ask for, for servers that are not ours: plain events in the JSON of A2A 1.0. */

export interface Turn {
  readonly taskId: string;
  readonly contextId: string;
  readonly message: { readonly messageId: string; readonly parts: readonly { readonly text?: string }[] };
  readonly history: readonly unknown[];
  readonly artifacts: readonly unknown[];
}

type TurnEvent = Readonly<Record<string, unknown>>;
export type Publish = (kind: "task" | "message" | "statusUpdate" | "artifactUpdate", value: TurnEvent) => void;

export class TckExecutor {
  readonly #unitMs: number;
  readonly #aborts = new Map<string, () => void>();

  constructor(unitMs: number) {
    this.#unitMs = unitMs;
  }

  async execute(turn: Turn, publish: Publish): Promise<void> {
    const { contextId, message, taskId } = turn;
    const does = (prefix: string) =>
      message.messageId.startsWith(prefix) || (message.parts[0]?.text ?? "").startsWith(prefix);
    const now = () => new Date().toISOString();
    const said = (text: string) => ({
      messageId: `${taskId}-said-${Math.random()}`,
      role: "ROLE_AGENT",
      parts: [{ text }],
      contextId,
      taskId,
    });
    if (does("tck-message-response")) {
      publish("message", said("Direct message response"));
      return;
    }
    const status = (state: string, text?: string) => ({
      taskId,
      contextId,
      status: {
        state: `TASK_STATE_${state}`,
        timestamp: now(),
        ...(text === undefined ? {} : { message: said(text) }),
      },
    });
    publish("task", {
      id: taskId,
      contextId,
      status: { state: "TASK_STATE_SUBMITTED", timestamp: now() },
      history: [...turn.history, message],
      artifacts: turn.artifacts,
    });
    const produce = () =>
      publish("artifactUpdate", {
        taskId,
        contextId,
        artifact: { artifactId: "output", name: "output", parts: [{ text: "Generated text content" }] },
        lastChunk: true,
      });
    if (does("tck-input-required")) return publish("statusUpdate", status("INPUT_REQUIRED", "Please say more."));
    if (does("tck-auth-required")) return publish("statusUpdate", status("AUTH_REQUIRED", "Please log in."));
    if (does("tck-artifact-text")) produce();
    const units = this.#unitsOf(does);
    if (units > 0) {
      publish("statusUpdate", status("WORKING"));
      if (!(await this.#work(taskId, units))) return;
      produce();
    }
    publish("statusUpdate", status("COMPLETED", "Hello from TCK"));
  }

  cancel(taskId: string, publish: Publish, contextId: string): void {
    this.#aborts.get(taskId)?.();
    const status = { state: "TASK_STATE_CANCELED", timestamp: new Date().toISOString() };
    publish("statusUpdate", { taskId, contextId, status });
  }

  #unitsOf(does: (prefix: string) => boolean): number {
    if (does("tck-cancel")) return 1_000;
    if (does("test-resubscribe-message-id")) return 2;
    if (does("tck-delayed-complete") || does("tck-long-running")) return 1;
    return does("tck-stream") ? 0.01 : 0;
  }

  #work(taskId: string, units: number): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#aborts.delete(taskId);
        resolve(true);
      }, units * this.#unitMs);
      this.#aborts.set(taskId, () => {
        clearTimeout(timer);
        this.#aborts.delete(taskId);
        resolve(false);
      });
    });
  }
}
