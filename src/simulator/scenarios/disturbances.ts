import { USUAL_STYLE } from "../link/wire-style.ts";
import type { Phone } from "../phone/phone.ts";
import { NotShown, type Scene } from "./scene.ts";

/** Every frame comes twice, with and without an id by which a message could be known again; it is answered once. */
export async function duplicates(scene: Scene): Promise<void> {
  const { phone, simulator } = scene;
  simulator.faults.duplicate(1);
  try {
    for (const messageIds of ["given", "left-out"] as const) {
      simulator.style = { ...USUAL_STYLE, messageIds };
      await scene.ask(phone, scene.phrases.plain);
      await scene.ask(phone, scene.phrases.streamed);
    }
  } finally {
    simulator.style = USUAL_STYLE;
    simulator.faults.duplicate(0);
  }
}

/** The platform closes the connection with 1000 while the agent works; the answer comes over the next one. */
export async function kick(scene: Scene): Promise<void> {
  const { phone } = scene;
  const { faults } = scene.simulator;
  const task = await scene.say(phone, scene.phrases.slow);
  faults.kick();
  await scene.answered(task);
  faults.kick();
  await scene.ask(phone, scene.phrases.plain);
}

/**
 * The connection is torn while the agent works. Nobody can know which of the last frames arrived; as long as the end is
 * not among them, all of it can be said again.
 */
export async function cut(scene: Scene): Promise<void> {
  const { phone } = scene;
  const { faults } = scene.simulator;
  const task = await scene.say(phone, scene.phrases.slow);
  await scene.firstSign(task);
  if (!task.isOpen) throw new NotShown("The answer was there before the connection could be torn.");
  faults.cut();
  await scene.answered(task);
}

const TALKERS = 3;
/** How long the platform cannot be reached after it has closed a connection. */
const MOST_DOWN_MS = 30;

/**
 * Conversations that go on while the connection is lost again and again, at any moment, with and without a close frame.
 * What was sent has arrived. Nothing is lost, every task ends once, and nothing comes again of which the agent could know
 * that it had come.
 */
export async function disconnects(scene: Scene): Promise<void> {
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
      await scene.ready();
      await scene.pause(scene.steadyMs);
      await scene.changes(scene.dice(6));
      faults.refuse(503);
      if (scene.dice(2) === 0) faults.kick();
      else faults.drop();
      await scene.pause(scene.dice(MOST_DOWN_MS));
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
export async function reordering(scene: Scene): Promise<void> {
  const { phone } = scene;
  const { faults } = scene.simulator;
  faults.reorder({ aboveBytes: 256, delayMs: 250 });
  try {
    await scene.ask(phone, scene.phrases.streamed);
  } finally {
    faults.inOrder();
  }
}
