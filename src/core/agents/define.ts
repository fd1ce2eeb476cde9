import type { Content } from "../client/parts.ts";
import { toParts } from "../client/parts.ts";
import { areHopsTracked, runWithHops } from "../client/run-hops.ts";
import type { Agent, AgentEvent, AgentRun, MessageDraft, Turn } from "../engine/agent.ts";
import type { Caller } from "../model/caller.ts";
import type { AgentExtension, AgentProfile, AgentProvider, ExtendedProfile, ProfileSkill } from "../model/card.ts";
import { parseDuration } from "../model/duration.ts";
import { rejectUnknownKeys } from "../model/suggestions.ts";
import { createMadeEvents, type MadeEvents } from "./made-events.ts";
import { AgentTurn } from "./turn.ts";

/** Definition of a skill; `tags` default to the id. */
export type SkillDefinition = Omit<ProfileSkill, "tags"> & { readonly tags?: readonly string[] };

/** The type of a function without a return statement. */
type NoReturn = ReturnType<() => void>;

/** Return value of a plain run function: a message, or nothing, which completes the task. */
type Answer = Content | MessageDraft | undefined | NoReturn;

type RunFunction = (
  turn: AgentTurn,
) => AsyncGenerator<AgentEvent, MessageDraft | undefined | NoReturn, undefined> | Promise<Answer> | Answer;

export interface AgentDefinition {
  /** Display name on the card. */
  readonly name: string;
  /** What the agent does, for users and for agents that search for one. */
  readonly description: string;
  /** Version of the agent itself. Default: `1.0.0`. */
  readonly version?: string;
  /** Default: one skill, the agent as a whole. */
  readonly skills?: readonly SkillDefinition[];
  /**
   * An async generator that yields events, or a function that returns a message. Returning nothing completes the task,
   * returning a message before any event replies without a task, throwing fails the task.
   */
  readonly run: RunFunction;
  /**
   * What happens to a running task when the process dies: `"fail"` (default) fails it, `"resume"` runs it again.
   * Declare `resume` only if a run can safely be repeated.
   */
  readonly onCrash?: Agent["onCrash"];
  /** Maximum number of concurrent runs. Default: unlimited. */
  readonly concurrency?: number;
  /** Maximum duration of one turn: milliseconds, or `500ms`, `60s`, `5m`, `1h`. The task then fails. Default: none. */
  readonly timeout?: number | string;
  /** Media types of messages. Default: `text/plain` and `application/json`. */
  readonly inputModes?: readonly string[];
  /** Media types of results. Default: `text/plain` and `application/json`. */
  readonly outputModes?: readonly string[];
  /** Whether callers may stream. Default: true. */
  readonly streaming?: boolean;
  /**
   * Whether a task that completes without a message repeats the text of its artifacts in one, for callers that show the
   * status only. Default: false.
   */
  readonly repeatTextInStatus?: boolean;
  /** Protocol extensions that the card declares. */
  readonly extensions?: readonly AgentExtension[];
  /** Organisation behind the agent: `{ organization, url }`. */
  readonly provider?: AgentProvider;
  /** Documentation for users of the agent. */
  readonly documentationUrl?: string;
  /** Icon of the agent. */
  readonly iconUrl?: string;
  /**
   * Additions to the card for authenticated callers: an object for all of them, or a function of the caller that
   * returns undefined to add nothing.
   */
  readonly extended?:
    | ExtendedDefinition
    | ((caller: Caller) => ExtendedDefinition | undefined | Promise<ExtendedDefinition | undefined>);
}

interface ExtendedDefinition {
  /** Replaces the public description. */
  readonly description?: string;
  /** In addition to the public skills. */
  readonly skills?: readonly SkillDefinition[];
}

const OPTION_NAMES = {
  name: true,
  description: true,
  version: true,
  skills: true,
  run: true,
  onCrash: true,
  concurrency: true,
  timeout: true,
  inputModes: true,
  outputModes: true,
  streaming: true,
  repeatTextInStatus: true,
  extensions: true,
  provider: true,
  documentationUrl: true,
  iconUrl: true,
  extended: true,
} satisfies Record<keyof AgentDefinition, true>;

const DEFAULT_MODES: readonly string[] = ["text/plain", "application/json"];

export function defineAgent(definition: AgentDefinition): Agent {
  checkDefinition(definition);
  const { run } = definition;
  const made = createMadeEvents();
  return {
    profile: profileOf(definition),
    onCrash: definition.onCrash ?? "fail",
    concurrency: definition.concurrency ?? Number.POSITIVE_INFINITY,
    timeoutMs: timeoutOf(definition.timeout),
    run: (turn) => startRun(run, turn, made),
  };
}

/** A generator is passed to the engine as is, so that an event needs no additional promise. */
function startRun(run: RunFunction, turn: Turn, made: MadeEvents): AgentRun {
  try {
    const result = runWithHops(turn, () => run(new AgentTurn(turn, made)));
    if (typeof result === "object" && result !== null && "next" in result) return trackSteps(result, turn);
    return answerRun(Promise.resolve(result));
  } catch (error) {
    return answerRun(Promise.reject(error));
  }
}

/** A generator resumes in the async context of its consumer, the engine: each step has to restore that of its run. */
function trackSteps(steps: AgentRun, turn: Turn): AgentRun {
  if (!areHopsTracked()) return steps;
  return {
    next: () => runWithHops(turn, () => steps.next()),
    return: (value) =>
      runWithHops(turn, () => steps.return?.(value) ?? Promise.resolve({ done: true, value: undefined })),
  };
}

/** The run of a plain function: yields nothing and returns the answer. */
function answerRun(answer: Promise<Answer>): AgentRun {
  // The consumer receives the rejection from `next`; without a consumer it must not end the process.
  answer.catch(() => {});
  return {
    next: async () => ({ done: true, value: toDraft(await answer) }),
    return: async () => ({ done: true, value: undefined }),
  };
}

function toDraft(answer: Answer): MessageDraft | undefined {
  if (answer === undefined) return undefined;
  if (typeof answer === "string" || isParts(answer)) return { parts: toParts(answer) };
  if (typeof answer === "object" && answer !== null && Array.isArray(answer.parts)) return answer;
  throw new TypeError("An agent's run must return text, parts, a message, or nothing.");
}

const isParts = (answer: Content | MessageDraft): answer is Exclude<Content, string> => Array.isArray(answer);

function profileOf(definition: AgentDefinition): AgentProfile {
  const { name, description, provider, documentationUrl, iconUrl, extended } = definition;
  const skills = definition.skills?.map(toSkill) ?? [];
  return {
    name,
    description,
    version: definition.version ?? "1.0.0",
    skills: skills.length > 0 ? skills : [toSkill({ id: slugOf(name), name, description })],
    inputModes: definition.inputModes ?? DEFAULT_MODES,
    outputModes: definition.outputModes ?? DEFAULT_MODES,
    streaming: definition.streaming ?? true,
    extensions: definition.extensions ?? [],
    repeatTextInStatus: definition.repeatTextInStatus === true || undefined,
    provider,
    documentationUrl: documentationUrl || undefined,
    iconUrl: iconUrl || undefined,
    extended: extended && toExtended(extended),
  };
}

function toExtended(extended: NonNullable<AgentDefinition["extended"]>): NonNullable<AgentProfile["extended"]> {
  if (typeof extended !== "function") return toExtendedProfile(extended);
  return async (caller) => {
    const own = await extended(caller);
    if (own === undefined) return undefined;
    for (const skill of own.skills ?? []) checkSkill(skill);
    return toExtendedProfile(own);
  };
}

function toExtendedProfile({ skills, ...rest }: ExtendedDefinition): ExtendedProfile {
  return skills === undefined ? rest : { ...rest, skills: skills.map(toSkill) };
}

export function toSkill(skill: SkillDefinition): ProfileSkill {
  return { ...skill, tags: skill.tags ?? [skill.id] };
}

function slugOf(name: string): string {
  const slug = name
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Number}]+/gu, "_")
    .replace(/^_+|_+$/g, "");
  return slug === "" ? "agent" : slug;
}

function timeoutOf(timeout: number | string | undefined): number | undefined {
  return typeof timeout === "string" ? parseDuration(timeout) : timeout;
}

/** Definitions may come from untyped modules, so they are validated completely. */
function checkDefinition(definition: AgentDefinition): void {
  if (typeof definition !== "object" || definition === null) throwInvalid("needs an object that describes the agent");
  rejectUnknownKeys("defineAgent", definition, Object.keys(OPTION_NAMES));
  for (const key of ["name", "description"] as const) {
    const value: unknown = definition[key];
    if (typeof value !== "string" || value.trim() === "") throwInvalid(`requires "${key}": a string that is not empty`);
  }
  if (typeof definition.run !== "function") throwInvalid(`needs "run": a function, usually "async *run(turn) { … }"`);
  const { onCrash, concurrency, timeout } = definition;
  if (onCrash !== undefined && onCrash !== "fail" && onCrash !== "resume") {
    throwInvalid(`has an invalid onCrash ${JSON.stringify(onCrash)}; use "fail" or "resume"`);
  }
  if (concurrency !== undefined && !(concurrency >= 1)) throwInvalid(`needs "concurrency" to be 1 or more`);
  if (timeout !== undefined && !((timeoutOf(timeout) ?? 0) > 0)) {
    throwInvalid(`cannot read timeout ${JSON.stringify(timeout)}; use milliseconds or a string such as "60s"`);
  }
  const { extended } = definition;
  const further = typeof extended === "function" ? [] : (extended?.skills ?? []);
  for (const skill of [...(definition.skills ?? []), ...further]) checkSkill(skill);
}

function checkSkill(skill: SkillDefinition): void {
  for (const key of ["id", "name", "description"] as const) {
    const value: unknown = skill?.[key];
    if (typeof value !== "string" || value === "")
      throwInvalid(`needs every skill to have "${key}": ${JSON.stringify(skill)}`);
  }
}

function throwInvalid(reason: string): never {
  throw new TypeError(`defineAgent ${reason}.`);
}
