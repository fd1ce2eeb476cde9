import type { AgentCard } from "../../model/card.ts";
import { BINDING, VERSION } from "./version.ts";

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
