import type { CodecTools } from "../../../src/core/dialects/contract.ts";
import { ProtocolError } from "../../../src/core/model/errors.ts";
import type { CallContext, Operation, OutcomeOf, SendOutcome } from "../../../src/core/model/operation.ts";
import type { Link } from "../../../src/core/wire/link.ts";
import { callingEach, type OneLinkCaller } from "../each-link.ts";
import { fromLine, type Line, toLine, wordsOf } from "./codec.ts";

export const calling = callingEach((link, tools) => new ChatCaller(link, tools));

interface Waiting {
  readonly resolve: (outcome: SendOutcome) => void;
  readonly reject: (error: Error) => void;
}

/** Nothing in a line says which one it answers: within a conversation the first answer is to the first question. */
class ChatCaller implements OneLinkCaller {
  readonly #link: Link;
  readonly #tools: CodecTools;
  readonly #waiting = new Map<string, Waiting[]>();
  #closed = false;

  constructor(link: Link, tools: CodecTools) {
    this.#link = link;
    this.#tools = tools;
    void this.#listen();
  }

  async dispatch<O extends Operation>(operation: O, { signal }: Pick<CallContext, "signal">): Promise<OutcomeOf<O>> {
    if (operation.kind !== "send") {
      throw new ProtocolError("UNSUPPORTED_OPERATION", `A chat has no way to ask for ${operation.kind}.`);
    }
    if (this.#closed) throw gone();
    if (signal?.aborted) throw givenUp();
    const { message } = operation;
    const conversation = message.contextId ?? this.#tools.ids.context();
    const words = wordsOf(message.parts, "message.parts");
    this.#tools.report(words.losses);
    const outcome = new Promise<SendOutcome>((resolve, reject) => {
      const line = this.#waiting.get(conversation) ?? [];
      this.#waiting.set(conversation, [...line, { resolve, reject }]);
      // Its place in the line stays: the answer will come and belongs to nobody else.
      signal?.addEventListener("abort", () => reject(givenUp()), { once: true });
    });
    await this.#send(toLine({ conversation, words: words.value }));
    return (await outcome) as OutcomeOf<O>;
  }

  async #send(text: string): Promise<void> {
    try {
      await this.#link.send(text);
    } catch (cause) {
      throw new ProtocolError("UNAVAILABLE", "The chat is over.", { cause });
    }
  }

  async #listen(): Promise<void> {
    for await (const text of this.#link.messages) {
      try {
        this.#take(fromLine(text));
      } catch (error) {
        if (!ProtocolError.is(error)) throw error;
      }
    }
    this.#closed = true;
    for (const line of this.#waiting.values()) for (const { reject } of line) reject(gone());
    this.#waiting.clear();
  }

  #take(line: Line): void {
    const [first, ...rest] = this.#waiting.get(line.conversation) ?? [];
    this.#waiting.set(line.conversation, rest);
    if ("code" in line) first?.reject(new ProtocolError(line.code, line.words));
    else {
      const parts = [{ text: line.words }];
      const messageId = this.#tools.ids.message();
      first?.resolve({ message: { messageId, role: "ROLE_AGENT", parts, contextId: line.conversation } });
    }
  }
}

const gone = () => new ProtocolError("UNAVAILABLE", "The chat is over.");
const givenUp = () => new ProtocolError("UNAVAILABLE", "The question was taken back.");
