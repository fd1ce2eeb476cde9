import type { Abilities, Dialect } from "../src/core/dialects/contract.ts";
import type { LossRule } from "../src/core/model/loss.ts";

const PLACE = { base: "B", rpc: "host:port", name: "NAME", isDefault: true };

const OPERATION_LABELS = {
  send: "send and wait for the answer",
  stream: "send and stream the answer",
  get: "get a task",
  list: "list tasks",
  cancel: "cancel a task",
  subscribe: "subscribe to a task",
  "push-create": "register a webhook",
  "push-get": "get a webhook",
  "push-list": "list webhooks",
  "push-delete": "remove a webhook",
  "extended-card": "extended card",
} as const satisfies Record<keyof Abilities["operations"], string>;

const PART_LABELS = {
  text: "text",
  raw: "files as bytes",
  url: "files by URL",
  data: "structured data",
} as const satisfies Record<keyof Abilities["parts"], string>;

/** What each dialect supports, as it declares; a test compares the declarations with its codecs. */
export function dialectsPage(dialects: readonly Dialect[]): string {
  return `# Dialects

Every agent is served in all of these dialects at once, and the client can call agents that use any of them. Internally there
is one model, that of A2A 1.0. A dialect that cannot express something drops it or changes its form, and such a loss is never
silent: it is counted (\`dragoman_losses_total\` on \`/metrics\`), logged at level \`debug\`, passed to the client's \`onNotice\`,
printed by \`dragoman send --debug\`, and refused with \`strict: true\`.

Ids that a dialect has no field for are not losses: 0.1 has no \`messageId\` and identifies artifacts by their index, so the
receiver generates ids. This page is generated from what the dialects declare.

Requests are read strictly. The answers of other agents are read as far as they can be: an id, a role or a state that is missing
or unknown is filled in, members of later versions are skipped, and a task in an unknown state (\`TASK_STATE_UNSPECIFIED\`) is
followed until it ends. All of that is reported as a loss, too.

## What each supports

${table(["", ...dialects.map(({ name }) => `\`${name}\``)], abilityRows(dialects))}

## Where each is served

${table(["dialect", "served at", "called over"], dialects.map(placesRow))}

${dialects.map(lossesSection).join("\n\n")}
`;
}

function abilityRows(dialects: readonly Dialect[]): string[][] {
  const row = (label: string, isSupported: (can: Abilities) => boolean) => [
    label,
    ...dialects.map(({ can }) => (isSupported(can) ? "yes" : "no")),
  ];
  const operations = Object.keys(OPERATION_LABELS) as (keyof Abilities["operations"])[];
  const parts = Object.keys(PART_LABELS) as (keyof Abilities["parts"])[];
  return [
    ...operations.map((kind) => row(OPERATION_LABELS[kind], (can) => can.operations[kind])),
    ...parts.map((kind) => row(PART_LABELS[kind], (can) => can.parts[kind])),
    row("artifacts", (can) => can.artifacts),
    row("input required", (can) => can.inputRequired),
    row("metadata", (can) => can.metadata),
    row("resuming streams without gaps", (can) => can.replay),
  ];
}

function placesRow({ name, serving, calling }: Dialect): string[] {
  const served = [
    ...(serving.jsonRpc === undefined ? [] : ["`POST B`"]),
    ...(serving.http ?? []).map(({ prefix }) => `\`B/${prefix}\``),
    ...(serving.rpc === undefined ? [] : [`gRPC \`${serving.rpc.service}\``]),
    ...(serving.carriers === undefined ? [] : ["configured connections"]),
  ];
  const called = calling.map((one) => (one.carrier === "link" ? "a link" : `\`${one.binding}\``));
  const inCard = serving.interfaces?.(PLACE).length ?? 0;
  const where = inCard > 0 ? "" : "; not among the interfaces of the 1.0 card";
  return [`\`${name}\``, `${served.join(", ")}${where}`, called.join(", ")];
}

function lossesSection({ name, losses }: Dialect): string {
  const head = `## What \`${name}\` loses`;
  if (losses.length === 0) return `${head}\n\nNothing: the model is that of 1.0.`;
  return `${head}\n\n${table(["what", "", "why, or what it becomes", "where"], losses.map(lossRow))}`;
}

const KIND_LABELS = {
  dropped: "dropped",
  bent: "changed",
  moved: "moved",
  filled: "filled in",
} as const satisfies Record<LossRule["kind"], string>;

function lossRow({ kind, what, reason, direction, bindings }: LossRule): string[] {
  const where = bindings === undefined ? "everywhere" : bindings.join(", ");
  return [`\`${what}\``, `${KIND_LABELS[kind]} when ${direction === "encode" ? "sent" : "received"}`, reason, where];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}
