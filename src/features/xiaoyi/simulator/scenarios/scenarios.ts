import { DEFAULT_STYLE, type WireStyle } from "../link/wire-format.ts";
import type { Phone } from "../phone.ts";
import { SOURCES } from "../violations.ts";
import { NotShown, type ScenarioContext, shorten } from "./scenario-context.ts";

const TALKERS = 3;
/** Maximum downtime of the platform after it has closed a connection. */
const MAX_DOWN_MS = 30;

const TOO_LATE = "The answer arrived before it could be cancelled.";

interface Spelling {
  readonly style: Partial<WireStyle>;
  /**
   * Whether a document or the publisher's plugin has it; forms that only other agents were seen to accept are optional.
   */
  readonly isKnown?: true;
}

const SPELLINGS = {
  "as documented": { style: {}, isKnown: true },
  "with underscores in method names": { style: { spelling: "underscored" }, isKnown: true },
  "as actions without JSON-RPC": { style: { encoding: "action" }, isKnown: true },
  "with the task's id as the id of the request": { style: { cancelNames: "id" }, isKnown: true },
  "in an envelope with msgType": { style: { encoding: "wrapped" } },
  "with the session in params": { style: { controlSession: "params" } },
  "with the task's id in taskId": { style: { cancelNames: "taskId" } },
  "with the task's id in params": { style: { cancelNames: "params" } },
  "without ids of messages": { style: { messageIds: "left-out" } },
} as const satisfies Record<string, Spelling>;

type Converse = (context: ScenarioContext) => Promise<void>;

/** `source` is the document that requires agents to support this. */
const scenario = (about: string, source: string, run: Converse) => ({ about, source, run, overLink: false });

/** A scenario that requires an agent connected over a link. */
const linkScenario = (...row: Parameters<typeof scenario>) => ({ ...scenario(...row), overLink: true });

export const SCENARIOS = {
  normal: scenario("messages and answers, with the app opened again in between", SOURCES.STREAM, async (context) => {
    const { phone } = context;
    await context.ask(phone, context.phrases.plain);
    phone.reopen();
    await context.ask(phone, context.phrases.plain);
  }),
  /** A streamed answer: every intermediate text is a prefix of the final one. */
  streaming: scenario("an answer in pieces", SOURCES.DEVICE_REPORT, async (context) => {
    const task = await context.say(context.phone, context.phrases.streamed);
    const seen = new Set<string>();
    const stop = context.simulator.subscribe((event) => {
      if (event.kind === "task" && event.task === task) seen.add(task.screen().text);
    });
    await context.expectAnswer(task).finally(stop);
    const { text } = task.screen();
    for (const part of seen)
      context.check(text.startsWith(part), `The screen showed ${shorten(part)}, which the answer does not begin with.`);
    seen.delete("");
    if (seen.size < 2) throw new NotShown("The answer came in one piece.");
  }),
  long: scenario("an answer that one frame cannot carry", SOURCES.DEVICE_REPORT, async (context) => {
    const task = await context.ask(context.phone, context.phrases.long);
    const { length } = task.screen().text;
    const { textLimit } = context.simulator.traits;
    if (length <= textLimit) throw new NotShown(`The answer has only ${length} characters.`);
  }),
  /** Two concurrent messages in one conversation and one in another: the newest of each conversation is answered. */
  "two-messages": scenario("a second message before the first is answered", SOURCES.CHANNEL_PLUGIN, async (context) => {
    const { phone } = context;
    const older = await context.say(phone, context.phrases.slow);
    const newer = phone.say(context.phrases.plain);
    const elsewhere = context.addPhone().say(context.phrases.plain);
    await Promise.all([context.expectAnswer(newer), context.expectAnswer(elsewhere)]);
    context.check(older.ending === "superseded", "The older message still had a channel.");
  }),
  /** The user cancels a running task; nothing more of it is shown, and the next message is answered. */
  cancel: scenario("a task stopped in the middle", SOURCES.CANCEL, async (context) => {
    const { phone } = context;
    const task = await context.say(phone, context.phrases.slow);
    if (!(await context.tryCancel(phone, task))) throw new NotShown(TOO_LATE);
    context.check(task.state === "canceled", `The cancelled task is ${task.state}.`);
    const before = task.ignored;
    // A link keeps the order: the answer is followed at most by one update in flight and the cancelled status.
    const isStillRunning = (): boolean => context.simulator.cloud === undefined && task.ignored > before + 2;
    // Checked before the next message, which would also stop the task.
    await context.waitForQuiet(task.waitUntil(isStillRunning));
    context.check(!isStillRunning(), "The cancelled task continued.");
    await context.ask(phone, context.phrases.plain);
    await context.ask(phone, context.phrases.plain);
    context.check(!isStillRunning(), "The cancelled task continued after the next message.");
  }),
  /** The user clears the context: the agent must not remember earlier messages. */
  clear: scenario("a conversation cleared and begun again", SOURCES.CANCEL, async (context) => {
    const { phone, phrases } = context;
    const secret = String(100_000 + context.randomInt(900_000));
    await context.askAndRead(phone, `${phrases.memorable} ${secret}`);
    const isKnown = (await context.askAndRead(phone, phrases.recalling)).includes(secret);
    const { conversationId } = phone;
    await context.clearContext(phone);
    context.check(phone.conversationId !== conversationId, "The conversation is still the same.");
    const elsewhere = await context.askAndRead(phone, phrases.recalling);
    context.check(!elsewhere.includes(secret), "Cleared content is still known in the next conversation.");
    if (context.simulator.cloud === undefined) {
      // The platform continues under a new id, so that this does not depend on whether the old conversation was found.
      phone.conversationId = conversationId;
      const there = await context.askAndRead(phone, phrases.recalling);
      if (there.includes(secret))
        context.note("Note: cleared content is still known under the old id of the conversation.");
    }
    if (!isKnown) throw new NotShown("The agent remembered nothing that clearing could remove.");
  }),
  /** The agent asks a question; the user's answer has the ids of that task and must not be taken for a duplicate. */
  question: scenario("a question of the agent, answered under the same ids", SOURCES.PLUGIN, async (context) => {
    const { phone } = context;
    const task = await context.say(phone, context.phrases.asking);
    await context.within(task.waitUntilSettled(), "The question");
    if (!task.asks) throw new NotShown("The agent asked nothing.");
    const shown = task.screen();
    context.check(
      shown.text !== "" || shown.notes.length > 0 || shown.statusBar !== "",
      "The question cannot be read.",
    );
    const resumed = phone.say(context.phrases.reply);
    context.check(resumed === task, "The reply began another task.");
    await context.expectReply(task, context.phrases.reply);
  }),
  /** Every frame arrives twice, with and without a message id to deduplicate by; it must be answered once. */
  duplicates: linkScenario("every frame twice", SOURCES.PLUGIN, async (context) => {
    const { phone, simulator } = context;
    simulator.faults.duplicate(1);
    try {
      for (const messageIds of ["given", "left-out"] as const) {
        simulator.style = { ...DEFAULT_STYLE, messageIds };
        await context.ask(phone, context.phrases.plain);
        await context.ask(phone, context.phrases.streamed);
      }
    } finally {
      simulator.style = DEFAULT_STYLE;
      simulator.faults.duplicate(0);
    }
  }),
  /** The platform closes the connection with 1000 while the agent works; the answer arrives over the next one. */
  kick: linkScenario("the connection closed by the platform", SOURCES.PLUGIN, async (context) => {
    const { phone } = context;
    const { faults } = context.simulator;
    const task = await context.say(phone, context.phrases.slow);
    faults.kick();
    await context.expectAnswer(task);
    faults.kick();
    await context.ask(phone, context.phrases.plain);
  }),
  /**
   * The connection is aborted while the agent works. Neither side can know which of the last frames arrived; unless the
   * end is among them, everything may be sent again.
   */
  cut: linkScenario("the connection dropped while the agent works", SOURCES.PLUGIN, async (context) => {
    const { phone } = context;
    const { faults } = context.simulator;
    const task = await context.say(phone, context.phrases.slow);
    await context.waitForFirstUpdate(task);
    if (!task.isOpen) throw new NotShown("The answer arrived before the connection could be dropped.");
    faults.cut();
    await context.expectAnswer(task);
  }),
  /**
   * Conversations during which the connection is lost repeatedly, at any moment, with and without a close frame. What was
   * sent has arrived. Nothing is lost, every task ends once, and nothing is sent again whose arrival the agent could know
   * of.
   */
  disconnects: linkScenario(
    "the connection lost again and again while people talk",
    SOURCES.PLUGIN,
    async (context) => {
      const { faults } = context.simulator;
      let left = context.options.disconnects;
      const talk = async (phone: Phone): Promise<void> => {
        for (let turn = 1; left > 0; turn++) {
          const phrase = turn % 2 === 0 ? context.phrases.streamed : `${context.phrases.plain} ${turn}`;
          await context.ask(phone, phrase);
        }
      };
      const disturb = async (): Promise<void> => {
        for (; left > 0; left--) {
          await context.waitUntilReady();
          await context.pause(context.options.steadyMs);
          await context.waitForChanges(context.randomInt(6));
          faults.refuse(503);
          if (context.randomInt(2) === 0) faults.kick();
          else faults.drop();
          await context.pause(context.randomInt(MAX_DOWN_MS));
          faults.refuse();
        }
      };
      const phones = Array.from({ length: TALKERS }, () => context.addPhone());
      await Promise.all([disturb(), ...phones.map(talk)]).finally(() => {
        left = 0;
        faults.refuse();
      });
    },
  ),
  crowd: scenario("a thousand conversations at once", SOURCES.STREAM, async (context) => {
    await context.waitUntilReady();
    const phones = Array.from({ length: context.options.crowd }, () => context.addPhone());
    const tasks = phones.map((phone, index) => phone.say(`${context.phrases.plain} ${index}`));
    await Promise.all(tasks.map((task) => context.expectAnswer(task)));
  }),
  spellings: scenario("everything in all ways the platform spells it", SOURCES.PLUGIN, async (context) => {
    const { simulator } = context;
    let tooLate = 0;
    const converse = async (): Promise<void> => {
      const phone = context.addPhone();
      await context.ask(phone, context.phrases.plain);
      const task = await context.say(phone, context.phrases.slow);
      if (!(await context.tryCancel(phone, task))) tooLate++;
      await context.clearContext(phone);
      await context.ask(phone, context.phrases.plain);
    };
    try {
      for (const [name, { isKnown, style }] of Object.entries<Spelling>(SPELLINGS)) {
        simulator.style = { ...DEFAULT_STYLE, ...style };
        if (isKnown === true) await converse();
        else await context.attempt(`messages ${name} are not understood`, converse);
      }
    } finally {
      simulator.style = DEFAULT_STYLE;
    }
    if (tooLate > 0) throw new NotShown(TOO_LATE);
  }),
  /** Long bodies are overtaken by the final frame if that is sent too soon after them. */
  reordering: linkScenario("long bodies overtaken by what follows them", SOURCES.CHANNEL_PLUGIN, async (context) => {
    const { phone } = context;
    const { faults } = context.simulator;
    faults.reorder({ aboveBytes: 256, delayMs: 250 });
    try {
      await context.ask(phone, context.phrases.streamed);
    } finally {
      faults.inOrder();
    }
  }),
};
