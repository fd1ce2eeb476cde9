/** One turn of a conversation with a language model: requests, calls of agents between them, and the answer. */

import { cancelAtPeer, findChildId } from "../../core/agents/child-task.ts";
import { UnusableAnswerError } from "../../core/agents/collector.ts";
import type { AgentDirectory, RunServices } from "../../core/agents/directory.ts";
import type { AgentTurn } from "../../core/agents/turn.ts";
import type { AgentEvent, DroppedTask } from "../../core/engine/agent.ts";
import { ProtocolError } from "../../core/model/errors.ts";
import { EXTENSIONS } from "../../core/model/extensions.ts";
import type { Part } from "../../core/model/message.ts";
import { statusText } from "../../core/model/status-texts.ts";
import { type AgentAnswer, type AgentCall, createAgentTools, toToolResult } from "./agent-tools.ts";
import { callAgent, takeCall } from "./call-agent.ts";
import type { ChatMessage, ContentPart, ToolCall } from "./chat-codec.ts";
import type { ChatModel } from "./chat-model.ts";
import { recallConversation, rememberExchange } from "./conversations.ts";
import {
  estimateMessageTokens,
  simplifyContent,
  textOfContent,
  toContent,
  UnsupportedPartError,
} from "./message-content.ts";
import { ModelError } from "./model-error.ts";
import type { LlmHost, LlmOptions } from "./options.ts";
import type { ChatChunk, ChatResult } from "./read-answer.ts";
import { createTokenCount, type TokenCount, type Usage } from "./token-count.ts";

export interface LlmChat extends Omit<LlmOptions, "model"> {
  /** Name of the agent in the configuration. */
  readonly id: string;
  readonly model: ChatModel;
  readonly host: LlmHost;
  readonly directory: AgentDirectory;
  /** Undefined if the agent is not part of a server. */
  readonly services: () => RunServices | undefined;
}

type UserContent = string | readonly ContentPart[];

/** How far a turn has come, for a run that continues after a crash, or after the reply to a question. */
type Progress = {
  /** Id of the message that is being answered. */
  readonly message: string;
  readonly artifact: string;
  /** Calls of agents and their results, with what the model wrote beside them. */
  readonly rounds: readonly ChatMessage[];
  /** All that was shown of the answer. */
  readonly text: string;
  readonly usage: Usage;
  /** Calls of the newest round that are not answered. */
  readonly open: readonly ToolCall[];
  /** Set while the first open call waits for the caller's reply: what the caller wrote at first. */
  readonly user?: UserContent;
};

/** Key in a task's memory. */
const PROGRESS = "llm";
/** A tool's result may take up this part of a request. */
const RESULT_SHARE = 4;

export async function* answer(turn: AgentTurn, chat: LlmChat): AsyncGenerator<AgentEvent, void, undefined> {
  yield turn.working();
  const progress = await readProgress(turn);
  const tokens = createTokenCount(chat.model.name, progress?.usage, (kind, count) =>
    chat.services()?.countTokens(chat.id, kind, count),
  );
  try {
    yield* new Answer(turn, chat, tokens, progress).run(progress);
  } catch (error) {
    if (error instanceof UnsupportedPartError) yield turn.rejected(error.message);
    else if (error instanceof ModelError) yield { ...turn.failed(error.message), ...tokens.toMetadata() };
    else throw error;
  }
}

/** Undefined unless this turn continues an earlier one. */
async function readProgress(turn: AgentTurn): Promise<Progress | undefined> {
  const isFirst = turn.attempt === 1 && turn.history.length === 0;
  const stored = isFirst ? undefined : await turn.memory.get<Progress>(PROGRESS);
  return stored?.message === turn.message.messageId || stored?.user !== undefined ? stored : undefined;
}

class Answer {
  readonly #turn: AgentTurn;
  readonly #chat: LlmChat;
  readonly #tokens: TokenCount;
  readonly #tools: ReturnType<typeof createAgentTools> | undefined;
  /** Id of the message that is answered. */
  readonly #message: string;
  readonly #artifact: string;
  readonly #rounds: ChatMessage[];
  /** All that was shown of the answer. */
  #text: string;
  /** The next chunk continues the artifact. */
  #appends: boolean;

  constructor(turn: AgentTurn, chat: LlmChat, tokens: TokenCount, progress: Progress | undefined) {
    this.#turn = turn;
    this.#chat = chat;
    this.#tokens = tokens;
    if (chat.agents.length > 0) {
      this.#tools = createAgentTools(chat.agents, (agent) => chat.services()?.findProfile(agent));
    }
    this.#message = progress?.message ?? turn.message.messageId;
    this.#artifact = progress?.artifact ?? artifactOf(turn);
    this.#rounds = [...(progress?.rounds ?? [])];
    this.#text = progress?.text ?? "";
    // After a crash, artifacts are written again from the beginning.
    this.#appends = this.#text !== "" && turn.attempt === 1;
  }

  async *run(progress: Progress | undefined): AsyncGenerator<AgentEvent, void, undefined> {
    const turn = this.#turn;
    const user = progress?.user ?? (await this.#readMessage());
    if (user.length === 0) {
      yield turn.inputRequired("What can I do for you? 请问有什么可以帮您？");
      return;
    }
    if (this.#text !== "" && !this.#appends) yield this.#toChunk(this.#text);
    if (progress !== undefined) {
      const reply = progress.user === undefined ? undefined : turn.parts;
      if (yield* this.#callAgents(progress.open, user, reply)) return;
    }
    for (;;) {
      const result = yield* this.#request(user);
      if (result.toolCalls.length === 0 || result.finish === "length" || this.#tools === undefined) {
        yield* this.#finish(result, user);
        return;
      }
      this.#rounds.push({ role: "assistant", content: result.text, toolCalls: result.toolCalls });
      if (yield* this.#callAgents(result.toolCalls, user)) return;
    }
  }

  async #readMessage(): Promise<UserContent> {
    const { parts, signal } = this.#turn;
    const { host, images } = this.#chat;
    return simplifyContent(await toContent(parts, { images, readFile: host.readFile }, signal));
  }

  async *#request(user: UserContent): AsyncGenerator<AgentEvent, ChatResult, undefined> {
    const { maxTokens, maxToolCalls, model } = this.#chat;
    const left = maxTokens === undefined ? undefined : maxTokens - this.#tokens.completion;
    if (left !== undefined && left <= 0) throw new ModelError(statusText("modelOutOfTokens", maxTokens));
    const messages = await this.#toMessages(user);
    const answersOnly = this.#callCount() >= maxToolCalls;
    const chunks = model.stream({
      messages,
      tools: this.#tools?.definitions() ?? [],
      answersOnly,
      maxTokens: left,
      signal: this.#turn.signal,
    });
    const reasoning = createReasoning(this.#artifact);
    let isFirst = true;
    for (;;) {
      const step = await chunks.next();
      if (step.done === true) {
        yield* reasoning.end();
        this.#tokens.add(step.value, messages);
        if (step.value.finish === "content_filter") throw new ModelError(statusText("modelFiltered"));
        if (answersOnly && step.value.toolCalls.length > 0) {
          throw new ModelError(statusText("modelTooManyCalls", maxToolCalls));
        }
        return step.value;
      }
      yield* reasoning.add(step.value);
      if (step.value.text === "") continue;
      const text = isFirst && this.#text !== "" ? `\n\n${step.value.text}` : step.value.text;
      isFirst = false;
      this.#text += text;
      yield this.#toChunk(text);
    }
  }

  #toChunk(text: string): AgentEvent {
    const append = this.#appends;
    this.#appends = true;
    const artifact = { artifactId: this.#artifact, name: this.#artifact, parts: [{ text }] };
    return append ? { artifact, append } : { artifact };
  }

  /** The instructions, what fits of the earlier conversation, the message, and what was done for it. */
  async #toMessages(user: UserContent): Promise<readonly ChatMessage[]> {
    const { maxContextTokens, system } = this.#chat;
    const own: readonly ChatMessage[] = [{ role: "user", content: user }, ...this.#rounds];
    const instructions: readonly ChatMessage[] = system === undefined ? [] : [{ role: "system", content: system }];
    const taken = [...instructions, ...own].reduce((sum, message) => sum + estimateMessageTokens(message), 0);
    const records = this.#chat.services()?.records;
    const earlier =
      records === undefined ? [] : await recallConversation(records, this.#conversation(), maxContextTokens - taken);
    return [...instructions, ...earlier, ...own];
  }

  #conversation() {
    const { caller, task } = this.#turn;
    return { agent: this.#chat.id, owner: caller.owner, contextId: task.contextId };
  }

  #callCount(): number {
    return countCalls(this.#rounds);
  }

  /** One after another. Returns true if an agent waits for input, which the caller is then asked for. */
  async *#callAgents(
    calls: readonly ToolCall[],
    user: UserContent,
    reply?: readonly Part[],
  ): AsyncGenerator<AgentEvent, boolean, undefined> {
    const maxTokens = Math.floor(this.#chat.maxContextTokens / RESULT_SHARE);
    for (const [at, call] of calls.entries()) {
      const open = calls.slice(at);
      const isReply = at === 0 && reply !== undefined;
      const parsed = this.#parseCall(call);
      if ("problem" in parsed) {
        this.#rounds.push({ role: "tool", callId: call.id, content: parsed.problem });
        continue;
      }
      if (!isReply) {
        await this.#save(open);
        yield this.#turn.working(`${parsed.agent} …`);
      }
      const given = isReply ? { ...parsed, parts: reply } : parsed;
      const outcome = await this.#callAgent({ ...given, key: keyOf(this.#rounds), isReply });
      if (outcome.state === "TASK_STATE_INPUT_REQUIRED") {
        await this.#save(open, user);
        yield { ...this.#turn.inputRequired(outcome.parts), ...this.#tokens.toMetadata() };
        return true;
      }
      this.#rounds.push({ role: "tool", callId: call.id, content: toToolResult(outcome, maxTokens) });
    }
    if (calls.length > 0) await this.#save([]);
    return false;
  }

  #parseCall(call: ToolCall): ParsedCall {
    if (this.#callCount() >= this.#chat.maxToolCalls || !takeCall(this.#turn)) {
      return { problem: "No more calls are possible. Answer with what you know." };
    }
    return this.#tools?.parse(call) ?? { problem: "There are no tools." };
  }

  async #callAgent(call: AgentCall): Promise<AgentAnswer> {
    try {
      return await callAgent(call, this.#turn, this.#chat.directory);
    } catch (error) {
      this.#turn.signal.throwIfAborted();
      if (!ProtocolError.is(error) && !(error instanceof UnusableAnswerError)) throw error;
      return { state: "TASK_STATE_FAILED", parts: [{ text: error.message }] };
    }
  }

  async #save(open: readonly ToolCall[], user?: UserContent): Promise<void> {
    const progress: Progress = {
      message: this.#message,
      artifact: this.#artifact,
      rounds: this.#rounds,
      text: this.#text,
      usage: this.#tokens.usage(),
      open,
      user,
    };
    await this.#turn.memory.set(PROGRESS, progress);
  }

  async *#finish({ finish }: ChatResult, user: UserContent): AsyncGenerator<AgentEvent, void, undefined> {
    const { maxContextTokens, maxTokens, services } = this.#chat;
    const limit = maxTokens === undefined ? statusText("modelCutOff") : statusText("modelOutOfTokens", maxTokens);
    if (this.#text === "") throw new ModelError(finish === "length" ? limit : statusText("modelSaidNothing"));
    yield { ...this.#toChunk(""), lastChunk: true };
    const records = services()?.records;
    if (records !== undefined) {
      const question = typeof user === "string" ? user : textOfContent(user);
      const exchange = { id: this.#message, user: question, assistant: this.#text };
      await rememberExchange(records, this.#conversation(), exchange, maxContextTokens);
    }
    const completed = this.#turn.completed(finish === "length" ? limit : undefined);
    yield { ...completed, ...this.#tokens.toMetadata() };
  }
}

/** The answered calls, those that were refused included. */
function countCalls(rounds: readonly ChatMessage[]): number {
  return rounds.filter(({ role }) => role === "tool").length;
}

/** Of the next call. */
function keyOf(rounds: readonly ChatMessage[]): string {
  return `call-${countCalls(rounds)}`;
}

/** A task that waits for the reply to an agent's question was cancelled: so is the task of that agent. */
export async function cancelOpenCall({ caller, memory }: DroppedTask, chat: LlmChat): Promise<void> {
  const progress = await memory.get<Progress>(PROGRESS);
  const [call] = progress?.open ?? [];
  if (progress?.user === undefined || call === undefined) return;
  const parsed = createAgentTools(chat.agents, () => undefined).parse(call);
  const id = await findChildId(memory, `${keyOf(progress.rounds)}/`);
  if ("problem" in parsed || id === undefined) return;
  const agent = await chat.directory.resolve({ agent: parsed.agent }, { caller });
  await cancelAtPeer(agent, id, caller, agent.dialect);
}

type ParsedCall = ReturnType<ReturnType<typeof createAgentTools>["parse"]>;

/** Each message of a task has an answer of its own. */
function artifactOf(turn: AgentTurn): string {
  const earlier = turn.history.filter(({ role }) => role === "ROLE_USER").length;
  return earlier === 0 ? "answer" : `answer-${earlier + 1}`;
}

/** Reasoning is sent in pieces of about this length: each is a part of its own. */
const REASONING_CHUNK_LENGTH = 200;

/** Reasoning as an artifact beside the answer, which readers that do not know the extension find empty. */
function createReasoning(answerId: string) {
  const artifactId = answerId.replace("answer", "reasoning");
  let held = "";
  let append = false;
  function* flush(): Generator<AgentEvent, void, undefined> {
    if (held === "") return;
    const parts = [{ text: "", metadata: { [EXTENSIONS.reasoning]: held } }];
    yield { artifact: { artifactId, name: artifactId, parts, extensions: [EXTENSIONS.reasoning] }, append };
    append = true;
    held = "";
  }
  return {
    *add({ reasoning, text }: ChatChunk): Generator<AgentEvent, void, undefined> {
      held += reasoning;
      if (held.length >= REASONING_CHUNK_LENGTH || text !== "") yield* flush();
    },
    end: flush,
  };
}
