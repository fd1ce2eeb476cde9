import type { ServeContext } from "../../../src/core/dialects/contract.ts";
import { ProtocolError } from "../../../src/core/model/errors.ts";
import type { CallContext, SendOutcome } from "../../../src/core/model/operation.ts";
import { isInterrupted } from "../../../src/core/model/task.ts";
import { type Link, LinkError } from "../../../src/core/wire/link.ts";
import { servingEach } from "../each-link.ts";
import { fromLine, type Line, outcomeWords, toLine } from "./codec.ts";

/** What a conversation is about: one line after the other, and the task that waits for the next of them. */
interface Conversation {
  turn: Promise<void>;
  asking: string | undefined;
}

export const serving = servingEach(async (link, context) => {
  const conversations = new Map<string, Conversation>();
  for await (const text of link.messages) {
    const line = readLine(text);
    if (line === undefined || "code" in line) continue;
    const known = conversations.get(line.conversation) ?? { turn: Promise.resolve(), asking: undefined };
    conversations.set(line.conversation, known);
    known.turn = known.turn.then(() => answer(line, known, link, context));
  }
  await Promise.all([...conversations.values()].map(({ turn }) => turn));
});

/** People write all sorts of things in a chat; what is not for us is none of our business. */
function readLine(text: string): Line | undefined {
  try {
    return fromLine(text);
  } catch (error) {
    if (ProtocolError.is(error)) return undefined;
    throw error;
  }
}

async function answer(
  { conversation, words }: Line,
  known: Conversation,
  link: Link,
  { service, caller, report, ids }: ServeContext,
): Promise<void> {
  const call: CallContext = { caller, tenant: "", extensions: [], dialect: "chat" };
  let reply: Line;
  try {
    const outcome = await service.dispatch(
      {
        kind: "send",
        message: {
          messageId: ids.message(),
          role: "ROLE_USER",
          parts: [{ text: words }],
          contextId: conversation,
          ...(known.asking === undefined ? undefined : { taskId: known.asking }),
        },
      },
      call,
    );
    known.asking = askingOf(outcome);
    const said = outcomeWords(outcome);
    report(said.losses);
    reply = { conversation, words: said.value };
  } catch (error) {
    known.asking = undefined;
    const mine = ProtocolError.is(error) && error.code !== "INTERNAL_ERROR" ? error : undefined;
    reply = { conversation, code: mine?.code ?? "INTERNAL_ERROR", words: mine?.message ?? "Something broke." };
  }
  try {
    await link.send(toLine(reply));
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
  }
}

function askingOf(outcome: SendOutcome): string | undefined {
  return "task" in outcome && isInterrupted(outcome.task.status.state) ? outcome.task.id : undefined;
}
