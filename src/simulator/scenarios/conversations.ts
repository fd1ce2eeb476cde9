import { USUAL_STYLE, type WireStyle } from "../link/wire-style.ts";
import { brief, NotShown, type Scene } from "./scene.ts";

const TOO_LATE = "The answer was there before it could be cancelled.";

/** A message and its answer; then the app is opened anew and the conversation goes on. */
export async function normal(scene: Scene): Promise<void> {
  const { phone } = scene;
  await scene.ask(phone, scene.phrases.plain);
  phone.reopen();
  await scene.ask(phone, scene.phrases.plain);
}

/** An answer in pieces: what is shown on the way is always the beginning of what is shown in the end. */
export async function streaming(scene: Scene): Promise<void> {
  const task = await scene.say(scene.phone, scene.phrases.streamed);
  const seen = new Set<string>();
  const stop = scene.simulator.listenTo((event) => {
    if (event.kind === "task" && event.task === task) seen.add(task.screen().text);
  });
  await scene.answered(task).finally(stop);
  const { text } = task.screen();
  for (const part of seen)
    scene.check(text.startsWith(part), `The screen showed ${brief(part)}, which the answer does not begin with.`);
  seen.delete("");
  if (seen.size < 2) throw new NotShown("The answer came in one piece.");
}

/** An answer of which a frame can carry only a part. */
export async function long(scene: Scene): Promise<void> {
  const task = await scene.ask(scene.phone, scene.phrases.long);
  const { length } = task.screen().text;
  const { textLimit } = scene.simulator.traits;
  if (length <= textLimit) throw new NotShown(`The answer has only ${length} characters.`);
}

/** Two messages of one conversation at once, and one of another: the newest of each conversation is answered. */
export async function twoMessages(scene: Scene): Promise<void> {
  const { phone } = scene;
  const older = await scene.say(phone, scene.phrases.slow);
  const newer = phone.say(scene.phrases.plain);
  const elsewhere = scene.addPhone().say(scene.phrases.plain);
  await Promise.all([scene.answered(newer), scene.answered(elsewhere)]);
  scene.check(older.ending === "superseded", "The older message still had a channel.");
}

/** The user stops a task in the middle; nothing more is shown of it, and the next message is answered. */
export async function cancel(scene: Scene): Promise<void> {
  const { phone } = scene;
  const task = await scene.say(phone, scene.phrases.slow);
  if (!(await scene.cancelled(phone, task))) throw new NotShown(TOO_LATE);
  scene.check(task.state === "canceled", `The cancelled task is ${task.state}.`);
  const before = task.ignored;
  // On a link everything comes in order: after the answer at most what was about to be said, and that it was cancelled.
  const goesOn = (): boolean => scene.simulator.cloud === undefined && task.ignored > before + 2;
  // Looked at before the next message: that one would stop it, too.
  await scene.quiet(task.until(goesOn));
  scene.check(!goesOn(), "The cancelled task went on.");
  await scene.ask(phone, scene.phrases.plain);
  await scene.ask(phone, scene.phrases.plain);
  scene.check(!goesOn(), "The cancelled task went on when the next message came.");
}

/** The user has everything forgotten and begins anew: what was said is not known there. */
export async function clear(scene: Scene): Promise<void> {
  const { phone, phrases } = scene;
  const secret = String(100_000 + scene.dice(900_000));
  await scene.read(phone, `${phrases.memorable} ${secret}`);
  const isKnown = (await scene.read(phone, phrases.recalling)).includes(secret);
  const { conversationId } = phone;
  await scene.cleared(phone);
  scene.check(phone.conversationId !== conversationId, "The conversation is still the same.");
  const elsewhere = await scene.read(phone, phrases.recalling);
  scene.check(!elsewhere.includes(secret), "What was cleared is known in the next conversation.");
  if (scene.simulator.cloud === undefined) {
    // The platform goes on under a new id, so that nothing depends on whether the old conversation was found.
    phone.conversationId = conversationId;
    const there = await scene.read(phone, phrases.recalling);
    if (there.includes(secret))
      scene.note("Note: what was cleared is still known under the old id of the conversation.");
  }
  if (!isKnown) throw new NotShown("The agent kept nothing in mind that could be forgotten.");
}

/** The agent asks back; the answer comes under the ids of the question's task and must not pass for a duplicate. */
export async function question(scene: Scene): Promise<void> {
  const { phone } = scene;
  const task = await scene.say(phone, scene.phrases.asking);
  await scene.within(task.settled(), "The question");
  if (!task.asks) throw new NotShown("The agent asked nothing.");
  const shown = task.screen();
  scene.check(shown.text !== "" || shown.notes.length > 0 || shown.statusBar !== "", "The question cannot be read.");
  const resumed = phone.say(scene.phrases.reply);
  scene.check(resumed === task, "The reply began another task.");
  await scene.replied(task, scene.phrases.reply);
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
export async function spellings(scene: Scene): Promise<void> {
  const { simulator } = scene;
  let tooLate = 0;
  const converse = async (): Promise<void> => {
    const phone = scene.addPhone();
    await scene.ask(phone, scene.phrases.plain);
    const task = await scene.say(phone, scene.phrases.slow);
    if (!(await scene.cancelled(phone, task))) tooLate++;
    await scene.cleared(phone);
    await scene.ask(phone, scene.phrases.plain);
  };
  try {
    for (const [name, { isKnown, style }] of Object.entries<Spelling>(SPELLINGS)) {
      simulator.style = { ...USUAL_STYLE, ...style };
      if (isKnown === true) await converse();
      else await scene.attempt(`messages ${name} are not understood`, converse);
    }
  } finally {
    simulator.style = USUAL_STYLE;
  }
  if (tooLate > 0) throw new NotShown(TOO_LATE);
}

/** Many conversations at once. */
export async function crowd(scene: Scene): Promise<void> {
  await scene.ready();
  const phones = Array.from({ length: scene.crowd }, () => scene.addPhone());
  const tasks = phones.map((phone, index) => phone.say(`${scene.phrases.plain} ${index}`));
  await Promise.all(tasks.map((task) => scene.answered(task)));
}
