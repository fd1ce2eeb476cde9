import { describe, expect, it } from "vitest";
import type { Loss } from "../../../core/model/loss.ts";
import type { Part } from "../../../core/model/message.ts";
import { xiaoyi } from "./builders.ts";
import { encodePart } from "./parts.ts";

function said(part: Part): unknown {
  const losses: Loss[] = [];
  const wire = encodePart(part, "part", losses);
  expect(losses).toEqual([]);
  return wire;
}

describe("what agents can show", () => {
  it("a link to an app", () => {
    const part = xiaoyi.deeplink({ url: "https://a.example", appName: "Shop", appType: "DeepLink" });
    expect(part).toMatchObject({ text: "Shop: https://a.example" });
    expect(said(part)).toEqual({
      kind: "data",
      data: {
        commands: [
          {
            header: { namespace: "Command", name: "Deeplink" },
            payload: { url: "https://a.example", appName: "Shop", appType: "DeepLink" },
          },
        ],
      },
    });
  });

  it("an intent, and the one that asks for the location", () => {
    expect(said(xiaoyi.location())).toEqual({
      kind: "data",
      data: {
        commands: [
          {
            header: { namespace: "Common", name: "Action" },
            payload: {
              executeParam: {
                executeMode: "background",
                intentName: "GetCurrentLocation",
                bundleName: "com.huawei.hmos.aidispatchservice",
                achieveType: "INTENT",
                intentParam: {},
              },
              needUploadResult: true,
            },
          },
        ],
      },
    });
    const silent = xiaoyi.action({
      intentName: "Play",
      bundleName: "b",
      needUploadResult: false,
      more: { needUnlock: true },
    });
    expect(said(silent)).toMatchObject({
      data: { commands: [{ payload: { executeParam: { needUnlock: true }, needUploadResult: false } }] },
    });
  });

  it("cards", () => {
    const card = { cardName: "service_link", cardData: { items: [{ title: "详情", url: "https://a.example" }] } };
    const part = xiaoyi.card(card);
    expect(part).toMatchObject({ text: "service_link\n详情: https://a.example" });
    expect(said(part)).toEqual({ kind: "data", data: { cardsInfo: [card] } });
    expect(xiaoyi.card(card, { text: "See it." })).toMatchObject({ text: "See it." });
    expect(() => xiaoyi.cards([])).toThrow(RangeError);
    expect(() => xiaoyi.cards(Array(21).fill(card))).toThrow(RangeError);
  });

  it("chips", () => {
    const part = xiaoyi.chips(["再短一点", { text: "a&b", domain: "documentSummary" }]);
    expect(part).toMatchObject({ text: "再短一点\na&b" });
    expect(said(part)).toEqual({
      kind: "data",
      data: {
        chipsInfo: {
          displayChips: {
            chipsList: [
              { content: "superlink://vassistant?text=再短一点&startmode=recognize", domain: "AIGC" },
              { content: "superlink://vassistant?text=a%26b&startmode=recognize", domain: "documentSummary" },
            ],
          },
        },
      },
    });
    expect(() => xiaoyi.chips(["长".repeat(65)])).toThrow(RangeError);
  });

  it("references", () => {
    const part = xiaoyi.references([{ title: "Source", url: "https://s.example", open: "browser", imageUrl: "i" }]);
    expect(part).toMatchObject({ text: expect.stringContaining("Source: https://s.example") });
    expect(said(part)).toEqual({
      kind: "data",
      data: {
        reference: {
          items: [
            {
              params: { name: "Source", source: "agent" },
              card: {
                type: "leftPictureRightText",
                params: {
                  title: "Source",
                  link: { webLink: { startMode: 1, url: "https://s.example" } },
                  imageInfo: { small: { url: "i" } },
                },
              },
            },
          ],
        },
      },
    });
  });

  it("thoughts, which others do not see", () => {
    const part = xiaoyi.reasoning("Let me see.");
    expect(part).toMatchObject({ text: "" });
    expect(said(part)).toEqual({ kind: "reasoningText", reasoningText: "Let me see." });
  });

  it("a link to log in", () => {
    expect(xiaoyi.loginLink({ label: "登录", appId: "1", agentId: "a b" })).toBe(
      "[登录](superlink://vassistant?hwIdAuth=phone&appId=1&agentId=a%20b)",
    );
  });
});
