/** Agents in chat rooms, called over an account of the network that the configuration in the current folder has. */

import { existsSync } from "node:fs";
import { CommandError, usageError } from "../../../core/cli/errors.ts";
import type { Session } from "../../../core/cli/session/session.ts";
import type { SessionParts } from "../../../core/extension/contract.ts";
import { omitUndefined } from "../../../core/model/json.ts";
import { parseChatAddress } from "../a2a-lite/address.ts";

const CONFIG_FILE = "dragoman.yaml";
const FORM = "a2a-lite:<network>/<room>#<participant>";

export const sessionParts: SessionParts = {
  openAddress: (session, address) =>
    address.startsWith("a2a-lite:") ? connectToChatPeer(session, address) : undefined,
};

async function connectToChatPeer(session: Session, address: string) {
  const { output, settings, stop } = session;
  const parsed = parseChatAddress(address);
  if (parsed === undefined) throw usageError(`${address} is not an address of the form ${FORM}.`);
  const { network, room } = parsed;
  const accounts = await findAccounts(network, session);
  const account = accounts.find(({ rooms }) => rooms?.includes(room) ?? true);
  if (account === undefined) {
    const missing = accounts.length === 0 ? `no account of ${network}` : `no account of ${network} that is in ${room}`;
    throw new CommandError(
      "A2ACLI_ERR_USAGE",
      `./${CONFIG_FILE} has ${missing}, over which the agent could be called.`,
      `Add one to \`channels\` in ./${CONFIG_FILE}; \`dragoman channels show ${network}\` prints how.`,
    );
  }
  if (account.network.exclusive === true) await checkUnused(account.network.title);
  const { connect } = await import("../../../core/client/connect.ts");
  const agent = await connect(address, {
    channels: [{ [network]: account.settings }],
    signal: stop.signal,
    onNotice: ({ message }) => output.info(message),
    ...omitUndefined({ timeoutMs: settings.timeoutMs }),
  });
  // No one but the process that gave the task gets its messages.
  session.tasksCanBeRead = false;
  return agent;
}

/** A second connection would take posts, or the connection, from a server that runs with this configuration. */
async function checkUnused(title: string): Promise<void> {
  const { loadConfig } = await import("../../../core/server/config/index.ts");
  const { isDragoman } = await import("../../../core/cli/doctor/checks.ts");
  const { host, port, tls } = (await loadConfig(CONFIG_FILE)).server;
  if (!(await isDragoman(host, port, tls !== undefined))) return;
  throw new CommandError(
    "A2ACLI_ERR_UNREACHABLE",
    `The account of ${title} is in use by the server at ${host}:${port}, and ${title} allows one connection.`,
    "Call the agent through the server, or with another account in a configuration of its own.",
  );
}

async function findAccounts(network: string, { output }: Session) {
  if (!existsSync(CONFIG_FILE)) return [];
  const { configuredChannels } = await import("./configured.ts");
  return (await configuredChannels(CONFIG_FILE, output)).filter((entry) => entry.network.name === network);
}
