import { expect } from "vitest";
import type { Scenario } from "../scenario.ts";
import { PROFILE } from "../servers/profile.ts";

export const CARDS: readonly Scenario[] = [
  {
    name: "find the card",
    operation: "card",
    shows: "From the address alone, the client knows who the agent is and what it can do.",
    async run(driver) {
      expect(driver.card).toEqual({
        name: PROFILE.name,
        skills: [PROFILE.skill.id],
        streaming: true,
        pushNotifications: true,
      });
    },
  },
  {
    name: "the extended card",
    operation: "extended-card",
    shows: "Who shows who they are is shown more.",
    async run(driver) {
      expect((await driver.extendedCard()).skills).toEqual([PROFILE.skill.id, PROFILE.extendedSkill.id]);
    },
  },
];
