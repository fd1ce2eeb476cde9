import type { Content } from "../client/parts.ts";
import { toParts } from "../client/parts.ts";
import { areHopsTracked, runWithHops } from "../client/run-hops.ts";
import type { Agent, AgentEvent, AgentRun, MessageDraft, Turn } from "../engine/agent.ts";
import type { Caller } from "../model/caller.ts";
import type { AgentExtension, AgentProfile, AgentProvider, ExtendedProfile, ProfileSkill } from "../model/card.ts";
import { parseDuration } from "../model/duration.ts";
import { rejectUnknownKeys } from "../model/suggestions.ts";
import { AgentTurn } from "./turn.ts";

/** A skill as an author writes it; `tags` default to the id. */
export type SkillDefinition = Omit<ProfileSkill, "tags"> & { readonly tags?: readonly string[] };

/** The type of a function without a return statement. */
type NoReturn = ReturnType<() => void>;

/** What a run that is a plain function may answer: a message, or nothing, which completes the task. */
type Answer = Content | MessageDraft | undefined | NoReturn;

type RunFunction = (
  turn: AgentTurn,
) => AsyncGenerator<AgentEvent, MessageDraft | undefined | NoReturn, undefined> | Promise<Answer> | Answer;

export interface AgentDefinition {
  /** Name on the card, for people. */
  readonly name: string;
  /** What the agent does, for people and for agents that look for one. */
  readonly description: string;
  /** Version of the agent itself. Default: `1.0.0`. */
  readonly version?: string;
  /** What the agent can do. Default: one skill, the agent as a whole. */
  readonly skills?: readonly SkillDefinition[];
  /**
   * An async generator that yields events, or a function that returns a message. Falling off the end completes the
   * task, returning a message before anything was yielded answers without a task, throwing fails the task.
   */
  readonly run: RunFunction;
  /**
   * What becomes of a running task when the process dies: `"fail"` (default) fails it, `"resume"` runs it again.
   * Declare `resume` only if repeating a run does no harm.
   */
  readonly onCrash?: Agent["onCrash"];
  /** Maximum number of runs at the same time. Default: unlimited. */
  readonly concurrency?: number;
  /** Maximum time of one turn: milliseconds, or `500ms`, `60s`, `5m`, `1h`. The task fails after it. Default: none. */
  readonly timeout?: number | string;
  /** Media types that messages may have. Default: `text/plain` and `application/json`. */
  readonly inputModes?: readonly string[];
  /** Media types of the results. Default: `text/plain` and `application/json`. */
  readonly outputModes?: readonly string[];
  /** Whether callers may stream. Default: true. */
  readonly streaming?: boolean;
  /** Protocol extensions that the card declares. */
  readonly extensions?: readonly AgentExtension[];
  /** Organisation behind the agent: `{ organization, url }`. */
  readonly provider?: AgentProvider;
  /** Where people read about the agent. */
  readonly documentationUrl?: string;
  /** An icon for the agent. */
  readonly iconUrl?: string;
  /**
   * What only authenticated callers see on the card: an object for all of them, or a function of the caller;
   * undefined adds nothing for that caller.
   */
  readonly extended?:
    | ExtendedDefinition
    | ((caller: Caller) => ExtendedDefinition | undefined | Promise<ExtendedDefinition | undefined>);
}

interface ExtendedDefinition {
  /** Takes the place of the public one. */
  readonly description?: string;
  /** Beside the public ones. */
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
  return {
    profile: profileOf(definition),
    onCrash: definition.onCrash ?? "fail",
    concurrency: definition.concurrency ?? Number.POSITIVE_INFINITY,
    timeoutMs: timeoutOf(definition.timeout),
    run: (turn) => startRun(run, turn),
  };
}

/** A generator is handed to the engine as it is, so that an event passes no promise but its own. */
function startRun(run: RunFunction, turn: Turn): AgentRun {
  try {
    const result = runWithHops(turn, () => run(new AgentTurn(turn)));
    if (typeof result === "object" && result !== null && "next" in result) return trackSteps(result, turn);
    return new AnswerRun(Promise.resolve(result));
  } catch (error) {
    return new AnswerRun(Promise.reject(error));
  }
}

/** A generator continues as part of whatever asks it to, which is the engine: each step has to name its run. */
function trackSteps(steps: AgentRun, turn: Turn): AgentRun {
  if (!areHopsTracked()) return steps;
  return {
    next: () => runWithHops(turn, () => steps.next()),
    return: (value) =>
      runWithHops(turn, () => steps.return?.(value) ?? Promise.resolve({ done: true, value: undefined })),
  };
}

/** The run of a plain function: it yields nothing and returns its answer. */
class AnswerRun implements AsyncIterator<AgentEvent, MessageDraft | undefined> {
  readonly #answer: Promise<Answer>;

  constructor(answer: Promise<Answer>) {
    this.#answer = answer;
    // Whoever asks for the answer gets the rejection; one that nobody asked for must not end the process.
    answer.catch(() => {});
  }

  async next(): Promise<IteratorResult<AgentEvent, MessageDraft | undefined>> {
    return { done: true, value: toDraft(await this.#answer) };
  }

  async return(): Promise<IteratorResult<AgentEvent, undefined>> {
    return { done: true, value: undefined };
  }
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
    ...(provider && { provider }),
    ...(documentationUrl && { documentationUrl }),
    ...(iconUrl && { iconUrl }),
    ...(extended && { extended: toExtended(extended) }),
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

/** Definitions also come from untyped modules, so nothing about them is taken for granted. */
function checkDefinition(definition: AgentDefinition): void {
  if (typeof definition !== "object" || definition === null) throwInvalid("needs an object that describes the agent");
  rejectUnknownKeys("defineAgent", definition, Object.keys(OPTION_NAMES));
  for (const key of ["name", "description"] as const) {
    const value: unknown = definition[key];
    if (typeof value !== "string" || value.trim() === "") throwInvalid(`needs "${key}": a text that is not empty`);
  }
  if (typeof definition.run !== "function") throwInvalid(`needs "run": a function, usually "async *run(turn) { … }"`);
  const { onCrash, concurrency, timeout } = definition;
  if (onCrash !== undefined && onCrash !== "fail" && onCrash !== "resume") {
    throwInvalid(`does not know onCrash ${JSON.stringify(onCrash)}; it is "fail" or "resume"`);
  }
  if (concurrency !== undefined && !(concurrency >= 1)) throwInvalid(`needs "concurrency" to be 1 or more`);
  if (timeout !== undefined && !((timeoutOf(timeout) ?? 0) > 0)) {
    throwInvalid(`cannot read timeout ${JSON.stringify(timeout)}; write milliseconds or a text such as "60s"`);
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
