import { defineAgent } from "../../src/index.ts";

/** A message as the platform's guide for agent servers prints it, remarks and all. */
export const MESSAGE_STREAM = `{
  "jsonrpc": "2.0",
  "id": "msg-1",            // 本次 RPC 唯一 ID
  "method": "message/stream",
  "params": {
    "id": "task-001",       // 任务 ID（整场流式交互内保持不变）
    "sessionId": "sess-1",  // 客户端分配的会话 ID，切换即视为新上下文（服务端只负责管理，不负责生成）
    "agentLoginSessionId": "login-xxx", // 用户登录态（若有）
    "message": {
      "role": "user",
      "parts": [
        { "kind": "text", "text": "用户输入的 Query" }
        // { "kind": "file", "file": { name, mimeType, bytes|uri } }
        // { "kind": "data", "data": { ...结构化数据... } }
      ]
    }
  }
}`;

/** The remarks are the guide's; nothing else is changed. */
export function withoutComments(text: string): string {
  return text.replaceAll(/\s+\/\/ .*$/gm, "");
}

/** What an agent may show, as the guide prints it. */
export const SHOWN_DATA = `{
  "kind": "data",
  "data": {
    // commands：触发端能力
    "commands": [
      { "header": { "namespace": "demo", "name": "openLink" }, "payload": { "url": "https://..." } }
    ],
    // cardsInfo：业务卡片，卡片模板需在小艺开放平台注册
    "cardsInfo": { "cardName": "service_link", "cardData": { "items": [{ "title": "查看详情", "url": "https://..." }] }, "displayType": "DisplayFaCard" },
    // chipsInfo：底部 Chips，可用 superlink/h5/app 小程序协议
    "chipsInfo": { "displayChips": { "chipsList": [{ "content": "superlink://vassistant?text=打开H5", "domain": "agent" }] } },
    // reference：引用/链接卡片，webLink.url 可放 H5/小程序地址，startMode 区分跳转方式（需与客户端约定）
    "reference": {
      "items": [{
        "params": { "name": "h5_link", "source": "agent" },
        "card": {
          "type": "webLink",
          "params": {
            "title": "前往H5",
            "link": { "webLink": { "url": "https://...", "startMode": 1 } }
          }
        }
      }]
    }
  }
}`;

/** Waits until it is stopped. */
export const sleeper = defineAgent({
  name: "Sleeper",
  description: "Sleeps.",
  async *run(turn) {
    yield turn.working("Sleeping");
    await new Promise<void>((resolve) => turn.signal.addEventListener("abort", () => resolve()));
  },
});
