/** All chat networks. Their libraries are loaded when a channel is opened, not with this file. */

import { irc } from "./irc.ts";
import { mqtt } from "./mqtt.ts";
import type { Network } from "./network.ts";
import { terminal } from "./terminal.ts";
import { xmpp } from "./xmpp.ts";

export const NETWORKS: readonly Network[] = [irc, xmpp, mqtt, terminal];
