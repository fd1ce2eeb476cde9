import type { AgentCard } from "../../../core/model/card.ts";

/** The version in the response to `initialize`. */
export const VERSION = "1.0";
/** Stored with every task that is created in the dialect, so these names must never change. */
export const HTTP_DIALECT = "xiaoyi-http";
export const LINK_DIALECT = "xiaoyi-link";
/** The name in lists of interfaces; no specification defines one. */
export const BINDING = "urn:dragoman:binding:xiaoyi-http";
export const MESSAGE_PATH = "agent/message";
export const TOKEN_PATH = "agent/token";
export const SESSION_HEADER = "agent-session-id";

/** A minimal card for an agent of which only the URL is known. */
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
