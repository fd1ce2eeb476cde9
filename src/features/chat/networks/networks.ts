/** All chat networks. Their libraries are loaded when a channel is opened, not with this file. */

import { dingtalk } from "./dingtalk.ts";
import { discord } from "./discord.ts";
import { feishu } from "./feishu.ts";
import { irc } from "./irc.ts";
import { matrix } from "./matrix.ts";
import { mqtt } from "./mqtt.ts";
import type { Network } from "./network.ts";
import { slack } from "./slack.ts";
import { telegram } from "./telegram.ts";
import { terminal } from "./terminal.ts";
import { wecom } from "./wecom.ts";
import { xmpp } from "./xmpp.ts";

export const NETWORKS: readonly Network[] = [
  irc,
  xmpp,
  mqtt,
  matrix,
  telegram,
  discord,
  slack,
  feishu,
  dingtalk,
  wecom,
  terminal,
];
