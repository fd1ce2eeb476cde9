import type { Loss } from "../model/loss.ts";
import type { Count, Meter } from "../model/ports.ts";

const HELP = {
  events_dropped_after_terminal: "Events an agent produced after its task had ended.",
  events_merged: "Text chunks merged because a task ran ahead of the store.",
  runs_fenced: "Runs that lost their task to another process.",
  runs_resumed: "Tasks taken up again after a crash.",
  runs_failed_by_crash: "Tasks failed because their process had stopped.",
  wakeups_missed: "Log readers that found news no wake-up had announced.",
  readers_stalled:
    "Streams and answers cut off because their reader took nothing for too long, or too much waited for it.",
  push_delivered: "Push notifications that their receiver took.",
  push_failed: "Tries of push notifications that failed.",
  push_dead: "Push configs that were given up after too many failures.",
  requests_limited: "Requests refused because an address or an owner asked for too much.",
  audit_failures: "Attempts to write the audit log that failed.",
  audit_dropped: "Audit records lost because the log could not be written for too long.",
  link_frames_dropped: "Frames of agents that dialled in which nobody understood or asked for.",
  phone_notices_sent: "Notifications to phones that their platform took.",
  phone_notices_failed: "Notifications to phones that their platform refused, or did not take although tried often.",
  phone_notices_dropped: "Notifications to phones that came to nothing because too many waited, or for too long.",
} as const satisfies Record<Count, string>;

/** Counters of this process in the text format that Prometheus reads. */
export class Counters implements Meter {
  readonly #values = new Map<Count, number>();
  readonly #losses = new Map<string, number>();

  count(name: Count, by = 1): void {
    this.#values.set(name, (this.#values.get(name) ?? 0) + by);
  }

  countLosses(dialect: string, losses: readonly Loss[]): void {
    for (const { kind } of losses) {
      const labels = `dialect="${dialect}",kind="${kind}"`;
      this.#losses.set(labels, (this.#losses.get(labels) ?? 0) + 1);
    }
  }

  render(gauges: Readonly<Record<string, { readonly help: string; readonly value: number }>>): string {
    let text = "";
    for (const name of Object.keys(HELP) as Count[]) {
      text += metric(`dragoman_${name}_total`, "counter", HELP[name], this.#values.get(name) ?? 0);
    }
    text += "# HELP dragoman_losses_total Things a dialect could not say.\n# TYPE dragoman_losses_total counter\n";
    for (const [labels, value] of this.#losses) text += `dragoman_losses_total{${labels}} ${value}\n`;
    for (const [name, { help, value }] of Object.entries(gauges)) {
      text += metric(`dragoman_${name}`, "gauge", help, value);
    }
    return text;
  }
}

function metric(name: string, type: string, help: string, value: number): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${name} ${value}\n`;
}
