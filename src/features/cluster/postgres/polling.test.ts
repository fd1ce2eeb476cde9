import { expect, it } from "vitest";
import { FakeClock } from "../../../core/engine/testing/fake-clock.ts";
import { SILENT_LOG } from "../../../core/model/ports.ts";
import type { Database } from "./connection.ts";
import { createPoll } from "./polling.ts";

it("looks less and less often while the database is away, and as often as before once it is back", async () => {
  const clock = new FakeClock();
  let isAway = true;
  let asked = 0;
  const query = (async () => {
    asked++;
    if (isAway) throw new Error("It is away.");
    return [{ snapshot: "1:1:" }];
  }) as Database["query"];
  const poll = createPoll({ query } as Database, clock, SILENT_LOG, { isNeeded: () => true, onChange: () => {} });
  const askedIn = async (milliseconds: number) => {
    const before = asked;
    await clock.advance(milliseconds);
    return asked - before;
  };
  poll.start();
  await clock.advance(10_000);
  expect(await askedIn(20_000)).toBe(10);
  isAway = false;
  await clock.advance(2_000);
  expect(await askedIn(1_000)).toBe(20);
  poll.stop();
});
