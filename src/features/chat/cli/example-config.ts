import type { Network } from "../networks/network.ts";

/** Lines of YAML; the tests read each as a configuration. */
const SETTINGS: Readonly<Record<string, readonly string[]>> = {
  irc: ["host: irc.example.org", "nick: helper", 'channels: ["#agents"]'],
  mqtt: ["url: mqtts://broker.example.org", "name: helper", "rooms: [agents]"],
  xmpp: [
    "service: xmpps://xmpp.example.org",
    "jid: helper@xmpp.example.org",
    "password: ${XMPP_PASSWORD}",
    "rooms: [agents@rooms.xmpp.example.org]",
  ],
  matrix: ["homeserver: https://matrix.example.org", "token: ${MATRIX_TOKEN}", 'rooms: ["#agents:matrix.example.org"]'],
  telegram: ["token: ${TELEGRAM_TOKEN}"],
  discord: ["token: ${DISCORD_TOKEN}"],
  slack: ["appToken: ${SLACK_APP_TOKEN}", "botToken: ${SLACK_BOT_TOKEN}"],
  feishu: ["appId: ${FEISHU_APP_ID}", "appSecret: ${FEISHU_APP_SECRET}"],
  dingtalk: ["clientId: ${DINGTALK_CLIENT_ID}", "clientSecret: ${DINGTALK_CLIENT_SECRET}"],
  wecom: ["botId: ${WECOM_BOT_ID}", "secret: ${WECOM_SECRET}"],
  terminal: ["name: helper"],
};

/** A configuration to copy, with one agent in this network. */
export function exampleConfig({ name }: Network): string {
  return [
    "agents:",
    "  helper: { use: summary }",
    "channels:",
    `  - ${name}:`,
    ...(SETTINGS[name] ?? []).map((line) => `      ${line}`),
    "    agent: helper",
    '    allowPeers: "*" # everyone who can post there; or a list of ids',
    "",
  ].join("\n");
}
