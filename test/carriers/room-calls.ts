/** Asking other participants of a room: a post that mentions one, answered by the first finished reply to it. */
import type { PeerCaller } from "../../src/dialects/carrier.ts";
import type { CodecTools } from "../../src/dialects/contract.ts";
import { ProtocolError } from "../../src/model/errors.ts";
import { type Message, textOf } from "../../src/model/message.ts";
import type {
  FrameStream,
  Operation,
  OutcomeOf,
  SendInput,
  SendOutcome,
  StreamFrame,
} from "../../src/model/operation.ts";
import type { Channel, Post } from "./channel.ts";
import type { RoomSettings } from "./room-dialect.ts";
import { UNFINISHED } from "./room-reply.ts";

interface Question {
  readonly peer: string;
  readonly answer: (post: Post) => void;
  /** Posts that may become the answer by being edited. */
  readonly drafts: Set<string>;
}

export class RoomCalls {
  readonly #settings: Pick<RoomSettings, "asker" | "room">;
  readonly #ids: CodecTools["ids"];
  readonly #reachable: () => Promise<Channel>;
  /** By the id of the post that asks. */
  readonly #questions = new Map<string, Question>();
  /** Replies that came before the id of the post they reply to was known. */
  readonly #early: Post[] = [];
  #asking = 0;

  constructor(settings: RoomSettings, ids: CodecTools["ids"], reachable: () => Promise<Channel>) {
    this.#settings = settings;
    this.#ids = ids;
    this.#reachable = reachable;
  }

  peer(id: string): PeerCaller {
    return { dispatch: (operation, { signal }) => this.#dispatch(id, operation, signal) };
  }

  /** Whether the post is about a question. */
  take(post: Post): boolean {
    for (const [id, { answer, drafts, peer }] of this.#questions) {
      const isReply = post.replyTo === id || (post.edits !== undefined && drafts.has(post.edits));
      if (!isReply || post.sender.id !== peer) continue;
      if (post.text.endsWith(UNFINISHED)) drafts.add(post.edits ?? post.id);
      else {
        this.#questions.delete(id);
        answer(post);
      }
      return true;
    }
    if (this.#asking > 0 && post.replyTo !== undefined && !post.sender.self) this.#early.push(post);
    return false;
  }

  async #dispatch<O extends Operation>(peer: string, operation: O, signal?: AbortSignal): Promise<OutcomeOf<O>> {
    if (operation.kind !== "send" && operation.kind !== "stream") {
      throw new ProtocolError("UNSUPPORTED_OPERATION", `A room has no way to ask for ${operation.kind}.`);
    }
    const message = await this.#ask(peer, operation, signal);
    const outcome: SendOutcome | FrameStream = operation.kind === "send" ? { message } : framesOf(message);
    return outcome as OutcomeOf<O>;
  }

  async #ask(peer: string, { message }: SendInput, signal?: AbortSignal): Promise<Message> {
    const { asker, room } = this.#settings;
    const text = textOf(message.parts);
    this.#asking++;
    const draft = { room, as: asker, text, mentions: [peer], key: message.messageId };
    const id = await this.#post(draft).finally(() => this.#asking--);
    const answered = await new Promise<Post>((resolve, reject) => {
      this.#questions.set(id, { peer, answer: resolve, drafts: new Set() });
      signal?.addEventListener("abort", () => {
        this.#questions.delete(id);
        reject(new ProtocolError("UNAVAILABLE", "The question was withdrawn."));
      });
      for (const post of this.#early.splice(0)) this.take(post);
    });
    const parts = [
      { text: answered.text },
      ...answered.files.map(({ mediaType, name, url }) => ({ url, filename: name, mediaType })),
    ];
    return { messageId: this.#ids.message(), role: "ROLE_AGENT", parts };
  }

  async #post(draft: Parameters<Channel["post"]>[0]): Promise<string> {
    for (;;) {
      const channel = await this.#reachable();
      try {
        return (await channel.post(draft)).id;
      } catch {
        await channel.closed;
      }
    }
  }
}

async function* framesOf(message: Message): FrameGenerator {
  yield [{ event: { message }, json: JSON.stringify({ message }) }];
}

type FrameGenerator = AsyncGenerator<readonly StreamFrame[], void, undefined>;
