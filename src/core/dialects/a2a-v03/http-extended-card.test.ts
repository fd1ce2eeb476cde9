import { describe, expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import type { Loss } from "../../model/loss.ts";
import { contextOf, exchangeOf, full } from "../suite/serving.ts";
import { httpExtendedCard } from "./bind-http.ts";
import { CARD, fakeService } from "./fixtures/serving.ts";

const GET = exchangeOf({ method: "GET", path: "" });

async function get(answer: () => unknown, exchange = GET, losses: Loss[] = []) {
  const context = contextOf(fakeService(answer), { report: (lost) => losses.push(...lost) });
  return full(await httpExtendedCard.handle(exchange, context));
}

function refusing(code: ConstructorParameters<typeof ProtocolError>[0]): () => never {
  return () => {
    throw new ProtocolError(code, "No.");
  };
}

describe("the extended card of 0.2", () => {
  it("is a document at a path of its own", async () => {
    expect([httpExtendedCard.version, httpExtendedCard.prefix]).toEqual(["0.2", "agent/authenticatedExtendedCard"]);
    const reply = await get(() => CARD);
    expect([reply.status, reply.headers["content-type"]]).toEqual([200, "application/json"]);
    expect(JSON.parse(String(reply.body))).toMatchObject({
      protocolVersion: "0.2.6",
      name: "Echo",
      url: "https://agents.example.com",
    });
  });

  it("is refused with statuses of HTTP", async () => {
    const statuses = async (code: Parameters<typeof refusing>[0]) => (await get(refusing(code))).status;
    expect(await statuses("UNAUTHENTICATED")).toBe(401);
    expect(await statuses("PERMISSION_DENIED")).toBe(403);
    expect(await statuses("EXTENDED_AGENT_CARD_NOT_CONFIGURED")).toBe(404);
    expect(await statuses("UNSUPPORTED_OPERATION")).toBe(404);
    expect(await statuses("INTERNAL_ERROR")).toBe(500);
    expect(full(httpExtendedCard.refuse(new ProtocolError("UNAUTHENTICATED", "Who?"), GET)).status).toBe(401);
  });

  it("can only be read, and nothing is below it", async () => {
    expect((await get(() => CARD, exchangeOf({ method: "POST", path: "" }))).status).toBe(405);
    expect((await get(() => CARD, exchangeOf({ method: "GET", path: "/more" }))).status).toBe(404);
  });

  it("reports what it cannot say", async () => {
    const losses: Loss[] = [];
    await get(() => ({ ...CARD, signatures: [{ protected: "p", signature: "s" }] }), GET, losses);
    expect(losses.map(({ path }) => path)).toEqual(["card.signatures"]);
  });
});
