import type { Abilities, Dialect } from "../src/dialects/contract.ts";
import type { LossRule } from "../src/model/loss.ts";

const PLACE = { base: "B", rpc: "host:port", name: "NAME", isDefault: true };

const OPERATION_LABELS = {
  send: "send, and wait for the answer",
  stream: "send, and follow the answer",
  get: "get a task",
  list: "list tasks",
  cancel: "cancel a task",
  subscribe: "follow a running task",
  "push-create": "register a webhook",
  "push-get": "read a webhook's registration",
  "push-list": "list webhooks",
  "push-delete": "remove a webhook",
  "extended-card": "the card for known callers",
} as const satisfies Record<keyof Abilities["operations"], string>;

const PART_LABELS = {
  text: "text",
  raw: "files, as bytes",
  url: "files, by address",
  data: "structured data",
} as const satisfies Record<keyof Abilities["parts"], string>;

/** What each dialect can say, from what it declares; a test holds the declarations against what its codecs do. */
export function dialectsPage(dialects: readonly Dialect[]): string {
  return `# Dialects

Every agent is served in all of these at once, and the client calls agents that speak any of them. Inside there is one
model, which is that of A2A 1.0; a dialect that has no words for something leaves it out or says it in another form. That
is never silent: the loss is counted (\`dragoman_losses_total\` on \`/metrics\`), written to the log at level \`debug\`,
told to the client's \`onNotice\`, printed by \`dragoman send --debug\`, and refused with \`strict: true\`.

Ids that a dialect has no place for are not losses: 0.1 has no \`messageId\` and names artifacts by their index, and who hears it makes
ids anew. This page is generated from what the dialects declare.

## What each can say

${table(["", ...dialects.map(({ name }) => `\`${name}\``)], abilityRows(dialects))}

## Where each is found

${table(["dialect", "served at", "called over"], dialects.map(placesRow))}

${dialects.map(lossesSection).join("\n\n")}
`;
}

function abilityRows(dialects: readonly Dialect[]): string[][] {
  const row = (words: string, tell: (can: Abilities) => boolean) => [
    words,
    ...dialects.map(({ can }) => (tell(can) ? "yes" : "no")),
  ];
  const operations = Object.keys(OPERATION_LABELS) as (keyof Abilities["operations"])[];
  const parts = Object.keys(PART_LABELS) as (keyof Abilities["parts"])[];
  return [
    ...operations.map((kind) => row(OPERATION_LABELS[kind], (can) => can.operations[kind])),
    ...parts.map((kind) => row(PART_LABELS[kind], (can) => can.parts[kind])),
    row("artifacts", (can) => can.artifacts),
    row("questions back (input required)", (can) => can.inputRequired),
    row("metadata", (can) => can.metadata),
    row("streams resumed without a gap", (can) => can.replay),
  ];
}

function placesRow({ name, serving, calling }: Dialect): string[] {
  const served = [
    ...(serving.jsonRpc === undefined ? [] : ["`POST B`"]),
    ...(serving.http ?? []).map(({ prefix }) => `\`B/${prefix}\``),
    ...(serving.rpc === undefined ? [] : [`gRPC \`${serving.rpc.service}\``]),
    ...(serving.carriers === undefined ? [] : ["links that are configured"]),
  ];
  const called = calling.map((one) => (one.carrier === "link" ? "a link" : `\`${one.binding}\``));
  const inCard = serving.interfaces?.(PLACE).length ?? 0;
  const where = inCard > 0 ? "" : "; not in the list of interfaces of the 1.0 card";
  return [`\`${name}\``, `${served.join(", ")}${where}`, called.join(", ")];
}

function lossesSection({ name, losses }: Dialect): string {
  const head = `## What \`${name}\` loses`;
  if (losses.length === 0) return `${head}\n\nNothing: the model is its own.`;
  return `${head}\n\n${table(["what", "", "becomes", "where"], losses.map(lossRow))}`;
}

function lossRow({ kind, what, reason, direction, bindings }: LossRule): string[] {
  const where = bindings === undefined ? "everywhere" : bindings.join(", ");
  return [`\`${what}\``, `${kind}, ${direction === "said" ? "when we say it" : "when we hear it"}`, reason, where];
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}
