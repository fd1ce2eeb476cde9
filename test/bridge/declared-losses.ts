/** What declared losses do to what a caller sees: nothing else may differ between a bridge and a direct call. */
import { isDeepStrictEqual } from "node:util";
import { LEGACY_LOSSES } from "../../src/core/dialects/shared/legacy/losses.ts";
import type { Loss, LossRule } from "../../src/core/model/loss.ts";
import type { Part } from "../../src/core/model/message.ts";
import { HTTP_LOSSES as XIAOYI } from "../../src/features/xiaoyi/codec/losses.ts";
import { phoneText } from "../../src/features/xiaoyi/codec/phone-texts.ts";
import type { Observed, Seen, SeenArtifact } from "./scenarios.ts";

interface DeclaredLoss {
  readonly rule: LossRule;
  /** As the table shows it. */
  readonly name: string;
  apply(observed: Observed): Observed;
}

const eachTask =
  (change: (seen: Seen) => Seen) =>
  ({ asked, task, ...rest }: Observed): Observed => ({
    ...rest,
    ...(asked && { asked: change(asked) }),
    task: change(task),
  });

const eachArtifact = (change: (artifact: SeenArtifact) => SeenArtifact) =>
  eachTask((seen) => ({ ...seen, artifacts: seen.artifacts.map(change) }));

const eachPart = (change: (part: Part) => Part) =>
  eachArtifact((artifact) => ({ ...artifact, parts: artifact.parts.map(change) }));

const textOf = (parts: readonly Part[] = []) => parts.map((part) => ("text" in part ? part.text : "")).join("");

function joinArtifacts(seen: Seen): Seen {
  const text = seen.artifacts.map(({ parts }) => textOf(parts)).join("\n\n");
  return seen.artifacts.length < 2 ? seen : { ...seen, artifacts: [{ parts: [{ text }] }] };
}

/** The question arrives twice, as text of the answer and because the task asks; a reason only as text. */
function moveMessages({ asked, task, ...rest }: Observed): Observed {
  const shown = (seen: Seen | undefined) => (seen?.message === undefined ? [] : [{ parts: seen.message }]);
  const { message: _moved, ...ended } = task;
  return {
    ...rest,
    ...(asked && { asked: { ...asked, artifacts: [...asked.artifacts, ...shown(asked)] } }),
    task: { ...ended, artifacts: [...shown(asked), ...task.artifacts, ...shown(task)] },
  };
}

/** In the order in which they are applied. */
const DECLARED: readonly DeclaredLoss[] = [
  {
    rule: LEGACY_LOSSES.rejected,
    name: "rejected is failed",
    apply: eachTask((seen) => {
      if (seen.state === "TASK_STATE_REJECTED") return { ...seen, state: "TASK_STATE_FAILED" };
      const [shown] = seen.message ?? [];
      const isRefusal = shown !== undefined && "text" in shown && shown.text === phoneText("zh", "rejected");
      return isRefusal ? { ...seen, message: [{ text: phoneText("zh", "failed") }] } : seen;
    }),
  },
  {
    rule: XIAOYI.artifactMembers,
    name: "artifacts have no name",
    apply: eachArtifact(({ parts }) => ({ parts })),
  },
  {
    rule: XIAOYI.dataAsText,
    name: "data is JSON in a text",
    apply: eachPart((part) =>
      "data" in part ? { text: `\n\`\`\`json\n${JSON.stringify(part.data, undefined, 2)}\n\`\`\`\n` } : part,
    ),
  },
  {
    rule: XIAOYI.fileAsName,
    name: "of bytes only the name is left",
    apply: eachPart((part) => ("raw" in part ? { text: part.filename ?? "" } : part)),
  },
  {
    rule: XIAOYI.fileAsLink,
    name: "a URL is a link in a text",
    apply: eachPart((part) => ("url" in part ? { text: `[${part.filename}](${part.url})` } : part)),
  },
  { rule: XIAOYI.artifactsAsOne, name: "artifacts are joined", apply: eachTask(joinArtifacts) },
  { rule: XIAOYI.messageAsText, name: "messages are text of the answer", apply: moveMessages },
];

/** Of the others there is nothing left on a phone that could be lost. */
export function isSeenByPhones({ reason }: Loss): boolean {
  return reason === LEGACY_LOSSES.rejected.reason;
}

/** The cell for what was seen over a bridge while these losses were reported; undefined: they do not explain it. */
export function explain(direct: Observed, bridged: Observed, reported: readonly Loss[]): string | undefined {
  if (isSame(bridged, direct)) return "ok";
  const names: string[] = [];
  let expected = direct;
  for (const { apply, name, rule } of DECLARED) {
    if (!reported.some(({ kind, reason }) => kind === rule.kind && reason === rule.reason)) continue;
    const changed = apply(expected);
    if (!isSame(changed, expected)) names.push(name);
    expected = changed;
  }
  return isSame(bridged, expected) ? `loss: ${names.join(", ")}` : undefined;
}

/** A member that is undefined is absent. */
function isSame(one: Observed, other: Observed): boolean {
  return isDeepStrictEqual(JSON.parse(JSON.stringify(one)), JSON.parse(JSON.stringify(other)));
}
