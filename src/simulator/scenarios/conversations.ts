import { USUAL_STYLE, type WireStyle } from "../link/wire-style.ts";
import { brief, NotShown, type Scene } from "./scene.ts";

/** A message and its answer; then the app is opened anew and the conversation goes on. */
export async function normal(scene: Scene): Promise<void> {
  const { phone } = scene.simulator;
  await scene.ask(phone, scene.phrases.plain);
  phone.reopen();
  await scene.ask(phone, scene.phrases.plain);
}

/** An answer in pieces: what is shown on the way is always the beginning of what is shown in the end. */
export async function streaming(scene: Scene): Promise<void> {
  const task = await scene.say(scene.simulator.phone, scene.phrases.streamed);
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

/** Two messages of one conversation at once, and one of another: the newest of each conversation is answered. */
export async function twoMessages(scene: Scene): Promise<void> {
  const { simulator } = scene;
  const older = await scene.say(simulator.phone, scene.phrases.slow);
  const newer = simulator.phone.say(scene.phrases.plain);
  const elsewhere = simulator.addPhone().say(scene.phrases.plain);
  await Promise.all([scene.answered(newer), scene.answered(elsewhere)]);
  scene.check(older.ending === "superseded", "The older message still had a channel.");
}

/** The user stops a task in the middle; nothing more is shown of it, and the next message is answered. */
export async function cancel(scene: Scene): Promise<void> {
  const { phone } = scene.simulator;
  const task = await scene.say(phone, scene.phrases.slow);
  await scene.firstSign(task);
  if (!task.isOpen) throw new NotShown("The answer was there before it could be cancelled.");
  await scene.controlled(phone.cancel(), "canceled");
  scene.check(task.state === "canceled", `The cancelled task is ${task.state}.`);
  const { ignored } = task;
  await scene.ask(phone, scene.phrases.plain);
  await scene.ask(phone, scene.phrases.plain);
  // On a link everything comes in order, and after the answer there is at most one more word: that it was cancelled.
  const more = task.ignored - ignored;
  scene.check(scene.simulator.cloud !== undefined || more <= 1, `The cancelled task went on with ${more} frames.`);
}

/** The user forgets everything and begins anew. */
export async function clear(scene: Scene): Promise<void> {
  const { phone } = scene.simulator;
  await scene.ask(phone, scene.phrases.plain);
  const { conversationId } = phone;
  await scene.controlled(phone.clear(), "cleared");
  scene.check(phone.conversationId !== conversationId, "The conversation is still the same.");
  await scene.ask(phone, scene.phrases.plain);
}

/** The agent asks back; the answer comes under the ids of the question's task and must not pass for a duplicate. */
export async function question(scene: Scene): Promise<void> {
  const { phone } = scene.simulator;
  const task = await scene.say(phone, scene.phrases.asking);
  await scene.within(task.settled(), "The question");
  if (!task.asks) throw new NotShown("The agent asked nothing.");
  const shown = task.screen();
  scene.check(shown.text !== "" || shown.notes.length > 0 || shown.statusBar !== "", "The question cannot be read.");
  const resumed = phone.say(scene.phrases.reply);
  scene.check(resumed === task, "The reply began another task.");
  await scene.replied(task, scene.phrases.reply);
}

const STYLES: readonly Partial<WireStyle>[] = [
  {},
  { encoding: "wrapped" },
  { encoding: "action" },
  { spelling: "underscored" },
  { controlSession: "params" },
  { cancelNames: "id" },
  { cancelNames: "taskId" },
  { cancelNames: "params" },
];

/** Messages, cancelling and clearing in all ways the platform spells them. */
export async function spellings(scene: Scene): Promise<void> {
  const { simulator } = scene;
  for (const style of STYLES) {
    simulator.style = { ...USUAL_STYLE, ...style };
    const phone = simulator.addPhone();
    await scene.ask(phone, scene.phrases.plain);
    const task = await scene.say(phone, scene.phrases.slow);
    await scene.firstSign(task);
    if (task.isOpen) await scene.controlled(phone.cancel(), "canceled");
    await scene.controlled(phone.clear(), "cleared");
    await scene.ask(phone, scene.phrases.plain);
  }
  simulator.style = USUAL_STYLE;
}

/** Many conversations at once. */
export async function crowd(scene: Scene): Promise<void> {
  const { simulator } = scene;
  await scene.ready();
  const phones = Array.from({ length: scene.crowd }, () => simulator.addPhone());
  const tasks = phones.map((phone, index) => phone.say(`${scene.phrases.plain} ${index}`));
  await Promise.all(tasks.map((task) => scene.answered(task)));
}
