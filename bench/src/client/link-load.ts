import type { LinkPlatform } from "./link-platform.ts";
import type { LoadResult } from "./load.ts";

/** Runs conversations over one link, each of which sends its next message once the previous one is answered. */
export async function runLinkLoad(platform: LinkPlatform, sessions: number, seconds: number): Promise<LoadResult> {
  const start = performance.now();
  const end = start + seconds * 1000;
  const run = `${Math.round(start)}`;
  let completed = 0;
  let frames = 0;
  await Promise.all(
    Array.from({ length: sessions }, async (_, index) => {
      const session = `s${index}`;
      for (let turn = 0; performance.now() < end; turn++) {
        const task = `${session}-${run}&${turn}`;
        const came = await platform.say(session, task, `hello ${task}`);
        frames += came;
        completed++;
      }
    }),
  );
  return { completed, frames, seconds: (performance.now() - start) / 1000 };
}
