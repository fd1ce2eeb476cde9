/** Asks a peer what it can do. */

import type { AgentCard } from "../../../../core/model/card.ts";
import { ProtocolError } from "../../../../core/model/errors.ts";
import type { Post, PostFile } from "../../../../core/wire/channel.ts";
import type { LiteMessage, Received } from "../../a2a-lite/message.ts";
import { withoutMention } from "../../a2a-lite/names.ts";
import { MAX_CARD_BYTES, readCard } from "../../a2a-lite/read-card.ts";
import type { CallTools } from "./tools.ts";

const DISCOVER: LiteMessage = { type: "discover", body: "What can you do?", attachments: [], others: {} };

const MAX_FILES = 4;

interface Question {
  readonly card: Promise<AgentCard>;
  readonly resolve: (card: AgentCard) => void;
  /** The post that asks, once the network has accepted it. */
  post?: string;
}

interface DiscoveryOptions {
  readonly tools: Pick<CallTools, "clock" | "self" | "times">;
  /** The peer and its room, for error messages. */
  readonly where: string;
  /** Where the peer can be called. */
  readonly address: string;
  readonly post: (message: LiteMessage) => Promise<{ readonly id: string }>;
}

export class Discovery {
  readonly #options: DiscoveryOptions;
  #question: Question | undefined;
  #card: AgentCard | undefined;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
  }

  /** The newest that the peer has posted, for whomever. */
  get card(): AgentCard | undefined {
    return this.#card;
  }

  /** Posts one question for all who wait for the answer. */
  discover(): Promise<AgentCard> {
    this.#question ??= this.#ask();
    return this.#question.card;
  }

  receive({ files, parsed, post }: Received): void {
    const text = parsed.kind === "message" ? parsed.message.body : post.text;
    void this.#read(text, files, post.sender.name).then((card) => {
      this.#card = card;
      this.#question?.resolve(card);
    });
  }

  /** A peer without the protocol may describe itself. Whether the post does. */
  receiveProse(post: Post, isForUs: boolean): boolean {
    const question = this.#question;
    const isAnswer = post.replyTo === undefined ? isForUs : post.replyTo === question?.post;
    if (question?.post === undefined || !isAnswer) return false;
    const { address, tools } = this.#options;
    const own = tools.self();
    const text = own === undefined ? post.text : withoutMention(post.text, own);
    question.resolve(readCard(text, [], { address, name: post.sender.name }));
    return true;
  }

  /** Files that cannot be read, or have something else, do not matter. */
  async #read(body: string, files: readonly PostFile[], name: string): Promise<AgentCard> {
    const { address, tools } = this.#options;
    const late = new AbortController();
    const stop = tools.clock.after(tools.times.cardMs, () => late.abort());
    const gone = new Promise<undefined>((resolve) => late.signal.addEventListener("abort", () => resolve(undefined)));
    const documents = files.filter((file) => file.name.endsWith(".json")).slice(0, MAX_FILES);
    const read = documents.map((file) => file.read(MAX_CARD_BYTES, late.signal).catch(() => undefined));
    const bytes = await Promise.all(read.map((one) => Promise.race([one, gone])));
    stop();
    return readCard(
      body,
      bytes.filter((one) => one !== undefined),
      { address, name },
    );
  }

  #ask(): Question {
    const { post, tools, where } = this.#options;
    const { cardMs } = tools.times;
    let resolve: Question["resolve"] = () => {};
    const card = new Promise<AgentCard>((onCard, onError) => {
      const error = new ProtocolError("UNAVAILABLE", `${where} did not send a card within ${cardMs / 1_000} s.`);
      const stop = tools.clock.after(cardMs, () => end(() => onError(error)));
      const end = (settle: () => void) => {
        stop();
        this.#question = undefined;
        settle();
      };
      resolve = (value) => end(() => onCard(value));
      post(DISCOVER).then(
        ({ id }) => {
          question.post = id;
        },
        (reason: unknown) => end(() => onError(reason)),
      );
    });
    const question: Question = { card, resolve };
    return question;
  }
}
