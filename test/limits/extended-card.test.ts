import { describe, expect, it } from "vitest";
import { defineAgent } from "../../src/core/agents/define.ts";
import type { ServeOptions } from "../../src/index.ts";
import { startServer } from "../support/lifecycle.ts";
import { sendRaw } from "../support/raw-http.ts";
import { INTERFACES, speaking } from "./interfaces.ts";

const skill = (id: string) => ({ id, name: id, description: `Does ${id}.` });

const secretive = defineAgent({
  name: "Secretive",
  description: "Public.",
  skills: [skill("public")],
  run: async () => "hi",
  extended: async ({ owner }) => {
    if (owner === "mallory") return undefined;
    if (owner === "broken") throw new Error("cannot say");
    return { description: `For ${owner}.`, ...(owner === "alice" && { skills: [skill("more")] }) };
  },
});

const authenticate: NonNullable<ServeOptions["authenticate"]> = ({ headers }) =>
  headers["x-owner"] === undefined ? undefined : { owner: headers["x-owner"], authenticated: true };

const server = await startServer({ agents: { secretive }, authenticate });

describe("an extended card that depends on the caller", () => {
  const having = INTERFACES.filter(({ dialect }) => dialect === "a2a-v1" || dialect === "a2a-v03");

  describe.each(having)("$dialect over $binding", (spoken) => {
    const shownTo = async (owner: string) => {
      const agent = await speaking(server.url, spoken, { headers: { "x-owner": owner } });
      return agent.extendedCard();
    };

    it("is another for each", async () => {
      const [alice, bob] = [await shownTo("alice"), await shownTo("bob")];
      expect([alice.description, bob.description]).toEqual(["For alice.", "For bob."]);
      expect(alice.skills.map(({ id }) => id)).toEqual(["public", "more"]);
      expect(bob.skills.map(({ id }) => id)).toEqual(["public"]);
      expect(alice.skills[1]?.tags).toEqual(["more"]);
    });

    it("is none for whom there is none, and an error of ours where it cannot be made", async () => {
      const mallory = shownTo("mallory");
      // Over gRPC, 0.3 has one method for both cards: who is shown no other is shown the public one.
      if (spoken.dialect === "a2a-v03" && spoken.binding === "GRPC") {
        expect((await mallory).description).toBe("Public.");
      } else await expect(mallory).rejects.toMatchObject({ code: "EXTENDED_AGENT_CARD_NOT_CONFIGURED" });
      await expect(shownTo("broken")).rejects.toMatchObject({ code: "INTERNAL_ERROR" });
    });

    it("is not for unauthenticated callers", async () => {
      const agent = await speaking(server.url, spoken);
      await expect(agent.extendedCard()).rejects.toMatchObject({ code: "UNAUTHENTICATED" });
    });
  });

  it("is announced on the public card, which is the same for everyone", async () => {
    const cards = await Promise.all(
      [undefined, { "x-owner": "alice" }].map(async (headers) => {
        return (await sendRaw(server.url, { path: "/.well-known/agent-card.json", headers })).body.toString();
      }),
    );
    expect(cards[0]).toBe(cards[1]);
    expect(JSON.parse(cards[0] ?? "").capabilities.extendedAgentCard).toBe(true);
    expect(cards[0]).not.toContain("For ");
  });
});
