import { DEFAULT_STYLE, type WireStyle } from "../link/wire-format.ts";
import type { Phone } from "../phone.ts";
import { NotShown, type ScenarioContext, shorten } from "./scenario-context.ts";

/** Every frame comes twice, with and without an id by which a message could be known again; it is answered once. */
export async function duplicates(scene: ScenarioContext): Promise<void> {
  const { phone, simulator } = scene;
  simulator.faults.duplicate(1);
  try {
    for (const messageIds of ["given", "left-out"] as const) {
      simulator.style = { ...DEFAULT_STYLE, messageIds };
      await scene.ask(phone, scene.phrases.plain);
      await scene.ask(phone, scene.phrases.streamed);
    }
  } finally {
    simulator.style = DEFAULT_STYLE;
    simulator.faults.duplicate(0);
  }
}

/** The platform closes the connection with 1000 while the agent works; the answer comes over the next one. */
export async function kick(scene: ScenarioContext): Promise<void> {
  const { phone } = scene;
  const { faults } = scene.simulator;
  const task = await scene.say(phone, scene.phrases.slow);
  faults.kick();
  await scene.expectAnswer(task);
  faults.kick();
  await scene.ask(phone, scene.phrases.plain);
}

/**
 * The connection is torn while the agent works. Nobody can know which of the last frames arrived; as long as the end is
 * not among them, all of it can be said again.
 */
export async function cut(scene: ScenarioContext): Promise<void> {
  const { phone } = scene;
  const { faults } = scene.simulator;
  const task = await scene.say(phone, scene.phrases.slow);
  await scene.waitForFirstUpdate(task);
  if (!task.isOpen) throw new NotShown("The answer was there before the connection could be torn.");
  faults.cut();
  await scene.expectAnswer(task);
}

const TALKERS = 3;
/** How long the platform cannot be reached after it has closed a connection. */
const MAX_DOWN_MS = 30;

/**
 * Conversations that go on while the connection is lost again and again, at any moment, with and without a close frame.
 * What was sent has arrived. Nothing is lost, every task ends once, and nothing comes again of which the agent could know
 * that it had come.
 */
export async function disconnects(scene: ScenarioContext): Promise<void> {
  const { faults } = scene.simulator;
  let left = scene.disconnects;
  const talk = async (phone: Phone): Promise<void> => {
    for (let turn = 1; left > 0; turn++) {
      const phrase = turn % 2 === 0 ? scene.phrases.streamed : `${scene.phrases.plain} ${turn}`;
      await scene.ask(phone, phrase);
    }
  };
  const disturb = async (): Promise<void> => {
    for (; left > 0; left--) {
      await scene.waitUntilReady();
      await scene.pause(scene.steadyMs);
      await scene.waitForChanges(scene.randomInt(6));
      faults.refuse(503);
      if (scene.randomInt(2) === 0) faults.kick();
      else faults.drop();
      await scene.pause(scene.randomInt(MAX_DOWN_MS));
      faults.refuse();
    }
  };
  const phones = Array.from({ length: TALKERS }, () => scene.addPhone());
  await Promise.all([disturb(), ...phones.map(talk)]).finally(() => {
    left = 0;
    faults.refuse();
  });
}

/** Long bodies are overtaken by what ends them, if that comes too soon after. */
export async function reordering(scene: ScenarioContext): Promise<void> {
  const { phone } = scene;
  const { faults } = scene.simulator;
  faults.reorder({ aboveBytes: 256, delayMs: 250 });
  try {
    await scene.ask(phone, scene.phrases.streamed);
  } finally {
    faults.inOrder();
  }
}

const TOO_LATE = "The answer was there before it could be cancelled.";

/** A message and its answer; then the app is opened anew and the conversation goes on. */
export async function normal(scene: ScenarioContext): Promise<void> {
  const { phone } = scene;
  await scene.ask(phone, scene.phrases.plain);
  phone.reopen();
  await scene.ask(phone, scene.phrases.plain);
}

/** An answer in pieces: what is shown on the way is always the beginning of what is shown in the end. */
export async function streaming(scene: ScenarioContext): Promise<void> {
  const task = await scene.say(scene.phone, scene.phrases.streamed);
  const seen = new Set<string>();
  const stop = scene.simulator.subscribe((event) => {
    if (event.kind === "task" && event.task === task) seen.add(task.screen().text);
  });
  await scene.expectAnswer(task).finally(stop);
  const { text } = task.screen();
  for (const part of seen)
    scene.check(text.startsWith(part), `The screen showed ${shorten(part)}, which the answer does not begin with.`);
  seen.delete("");
  if (seen.size < 2) throw new NotShown("The answer came in one piece.");
}

/** An answer of which a frame can carry only a part. */
export async function long(scene: ScenarioContext): Promise<void> {
  const task = await scene.ask(scene.phone, scene.phrases.long);
  const { length } = task.screen().text;
  const { textLimit } = scene.simulator.traits;
  if (length <= textLimit) throw new NotShown(`The answer has only ${length} characters.`);
}

/** Two messages of one conversation at once, and one of another: the newest of each conversation is answered. */
export async function twoMessages(scene: ScenarioContext): Promise<void> {
  const { phone } = scene;
  const older = await scene.say(phone, scene.phrases.slow);
  const newer = phone.say(scene.phrases.plain);
  const elsewhere = scene.addPhone().say(scene.phrases.plain);
  await Promise.all([scene.expectAnswer(newer), scene.expectAnswer(elsewhere)]);
  scene.check(older.ending === "superseded", "The older message still had a channel.");
}

/** The user stops a task in the middle; nothing more is shown of it, and the next message is answered. */
export async function cancel(scene: ScenarioContext): Promise<void> {
  const { phone } = scene;
  const task = await scene.say(phone, scene.phrases.slow);
  if (!(await scene.tryCancel(phone, task))) throw new NotShown(TOO_LATE);
  scene.check(task.state === "canceled", `The cancelled task is ${task.state}.`);
  const before = task.ignored;
  // On a link everything comes in order: after the answer at most what was about to be said, and that it was cancelled.
  const goesOn = (): boolean => scene.simulator.cloud === undefined && task.ignored > before + 2;
  // Looked at before the next message: that one would stop it, too.
  await scene.waitForQuiet(task.waitUntil(goesOn));
  scene.check(!goesOn(), "The cancelled task went on.");
  await scene.ask(phone, scene.phrases.plain);
  await scene.ask(phone, scene.phrases.plain);
  scene.check(!goesOn(), "The cancelled task went on when the next message came.");
}

/** The user has everything forgotten and begins anew: what was said is not known there. */
export async function clear(scene: ScenarioContext): Promise<void> {
  const { phone, phrases } = scene;
  const secret = String(100_000 + scene.randomInt(900_000));
  await scene.askAndRead(phone, `${phrases.memorable} ${secret}`);
  const isKnown = (await scene.askAndRead(phone, phrases.recalling)).includes(secret);
  const { conversationId } = phone;
  await scene.clearContext(phone);
  scene.check(phone.conversationId !== conversationId, "The conversation is still the same.");
  const elsewhere = await scene.askAndRead(phone, phrases.recalling);
  scene.check(!elsewhere.includes(secret), "What was cleared is known in the next conversation.");
  if (scene.simulator.cloud === undefined) {
    // The platform goes on under a new id, so that nothing depends on whether the old conversation was found.
    phone.conversationId = conversationId;
    const there = await scene.askAndRead(phone, phrases.recalling);
    if (there.includes(secret))
      scene.note("Note: what was cleared is still known under the old id of the conversation.");
  }
  if (!isKnown) throw new NotShown("The agent kept nothing in mind that could be forgotten.");
}

/** The agent asks back; the answer comes under the ids of the question's task and must not pass for a duplicate. */
export async function question(scene: ScenarioContext): Promise<void> {
  const { phone } = scene;
  const task = await scene.say(phone, scene.phrases.asking);
  await scene.within(task.waitUntilSettled(), "The question");
  if (!task.asks) throw new NotShown("The agent asked nothing.");
  const shown = task.screen();
  scene.check(shown.text !== "" || shown.notes.length > 0 || shown.statusBar !== "", "The question cannot be read.");
  const resumed = phone.say(scene.phrases.reply);
  scene.check(resumed === task, "The reply began another task.");
  await scene.expectReply(task, scene.phrases.reply);
}

interface Spelling {
  readonly style: Partial<WireStyle>;
  /** Whether a document or the publisher's plugin has it; what only others have been seen to accept is not demanded. */
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

/** Messages, cancelling and clearing in all ways the platform was seen to spell them. */
export async function spellings(scene: ScenarioContext): Promise<void> {
  const { simulator } = scene;
  let tooLate = 0;
  const converse = async (): Promise<void> => {
    const phone = scene.addPhone();
    await scene.ask(phone, scene.phrases.plain);
    const task = await scene.say(phone, scene.phrases.slow);
    if (!(await scene.tryCancel(phone, task))) tooLate++;
    await scene.clearContext(phone);
    await scene.ask(phone, scene.phrases.plain);
  };
  try {
    for (const [name, { isKnown, style }] of Object.entries<Spelling>(SPELLINGS)) {
      simulator.style = { ...DEFAULT_STYLE, ...style };
      if (isKnown === true) await converse();
      else await scene.attempt(`messages ${name} are not understood`, converse);
    }
  } finally {
    simulator.style = DEFAULT_STYLE;
  }
  if (tooLate > 0) throw new NotShown(TOO_LATE);
}

/** Many conversations at once. */
export async function crowd(scene: ScenarioContext): Promise<void> {
  await scene.waitUntilReady();
  const phones = Array.from({ length: scene.crowd }, () => scene.addPhone());
  const tasks = phones.map((phone, index) => phone.say(`${scene.phrases.plain} ${index}`));
  await Promise.all(tasks.map((task) => scene.expectAnswer(task)));
}
