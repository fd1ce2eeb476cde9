/** Whether the API of a language model can be reached and accepts the key, without a prompt. */

import {
  type AgentReport,
  type Claim,
  type Finding,
  isSo,
  isWrong,
  notChecked,
  statusOf,
} from "../../core/cli/doctor/probe/claims.ts";
import type { DoctorParts } from "../../core/extension/contract.ts";
import { fieldsOf, listOf } from "../../core/model/json.ts";
import { readText } from "./read-answer.ts";

export interface ModelTarget {
  readonly agent: string;
  readonly baseUrl: string;
  readonly model: string;
  readonly apiKey?: string | undefined;
}

interface ModelList {
  readonly status: number;
  readonly names: readonly string[];
}

const MAX_LIST_BYTES = 4 * 1024 * 1024;

export async function probeModel(
  { agent, apiKey, baseUrl, model }: ModelTarget,
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<AgentReport> {
  const url = `${baseUrl.replace(/\/+$/, "")}/models`;
  const both = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const claims: Claim[] = [];
  const add = (claim: string, finding: Finding) => claims.push({ claim, ...finding });
  try {
    const listed = await readModels(url, apiKey, both);
    add("model address", judgeAddress(listed));
    if (apiKey !== undefined) add("model key", await judgeKey(listed, () => readModels(url, undefined, both)));
    if (listed.status === 200) add(`model ${model}`, judgeModel(model, listed));
  } catch (error) {
    if (signal.aborted) add("model address", notChecked("was stopped before it was done"));
    else add("model address", isWrong(both.aborted ? "does not answer in time" : reasonOf(error)));
  }
  return { agent, part: "model", source: "configuration", url: baseUrl, status: statusOf(claims), claims };
}

async function readModels(url: string, apiKey: string | undefined, signal: AbortSignal): Promise<ModelList> {
  const headers = { accept: "application/json", ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }) };
  // A redirect could send the key somewhere the configuration does not name.
  const response = await fetch(url, { headers, redirect: "manual", signal });
  const { status } = response;
  const text = await readText(response, MAX_LIST_BYTES);
  if (status !== 200) return { status, names: [] };
  const models = listOf(fieldsOf(parse(text)).data).map(fieldsOf);
  return { status, names: models.flatMap(({ id }) => (typeof id === "string" ? [id] : [])) };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const REFUSED: ReadonlySet<number> = new Set([401, 403]);

function judgeAddress({ status }: ModelList): Finding {
  if (status === 200 || REFUSED.has(status)) return isSo("answers");
  if (status === 404 || status === 405) return isSo(`answers, but has no list of models (${status})`);
  if (status === 429) return notChecked("refuses requests because there are too many (429)");
  return isWrong(status >= 300 && status < 400 ? `redirects elsewhere (${status})` : `answers with ${status}`);
}

/** A list that anyone may read says nothing about the key. */
async function judgeKey({ status }: ModelList, readWithout: () => Promise<ModelList>): Promise<Finding> {
  if (REFUSED.has(status)) return isWrong(`is refused (${status})`);
  if (status !== 200) return notChecked("only a list of models can show it without a prompt");
  const open = await readWithout();
  return REFUSED.has(open.status) ? isSo("is accepted") : notChecked("the list of models is shown without a key, too");
}

/** Gateways accept models that they do not list. */
function judgeModel(model: string, { names }: ModelList): Finding {
  if (names.includes(model)) return isSo("is in the list of models");
  const count = names.length === 1 ? "1 model" : `${names.length} models`;
  return notChecked(`is not in the list of ${count}; only a prompt can show whether it exists`);
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return `cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`;
}

export const doctorParts: DoctorParts = {
  probes: (agent, { kind, source }, options) =>
    kind === "llm" ? [{ agent, run: () => probeModel({ agent, ...source.llm }, options) }] : [],
};
