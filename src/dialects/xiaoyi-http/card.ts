import type { AgentCard } from "../../model/card.ts";

/** What `initialize` answers with. */
export const VERSION = "1.0";
export const DIALECT_NAME = "xiaoyi-http";
/** Its name in lists of interfaces; no other document has one for it. */
export const BINDING = "urn:dragoman:binding:xiaoyi-http";
export const MESSAGE_PATH = "agent/message";
export const TOKEN_PATH = "agent/token";
export const SESSION_HEADER = "agent-session-id";

/** What is known of an agent at an address: that it can be spoken to. */
export function cardOf(url: string): AgentCard {
  return {
    name: new URL(url).host,
    description: "An agent made for Xiaoyi. It publishes no card.",
    version: "unknown",
    supportedInterfaces: [{ url, protocolBinding: BINDING, protocolVersion: VERSION }],
    capabilities: { streaming: true, pushNotifications: false },
    defaultInputModes: ["*/*"],
    defaultOutputModes: ["text/markdown"],
    skills: [],
  };
}
