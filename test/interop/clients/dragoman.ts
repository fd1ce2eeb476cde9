import { ConnectionError, connect, ProtocolError, type RemoteAgent } from "../../../src/client.ts";
import { CREDENTIALS, type Credentials, type Driver, factsOf } from "../driver.ts";

/** Our client. */
export async function driveDragoman(
  url: string,
  binding: string,
  version: string,
  credentials: Credentials = CREDENTIALS,
): Promise<Driver> {
  const agent = await connect(url, {
    binding,
    version,
    headers: { ...credentials },
    // What a server answers is to be seen, not what it answers in the end.
    retry: { attempts: 1, baseMs: 1, capMs: 1 },
  });
  return {
    card: factsOf(agent.card),
    speaks: `${agent.interface.binding} ${agent.interface.version}`,
    send: (sending) => agent.send(sending),
    stream: (sending) => events(agent.stream(sending)),
    get: (id, historyLength) => agent.get(id, historyLength === undefined ? {} : { historyLength }),
    list: async (contextId) => (await agent.listPage({ contextId })).tasks,
    cancel: (id) => agent.cancel(id),
    subscribe: (id) => events(agent.subscribe(id)),
    createPushConfig: (taskId, config) => agent.createPushConfig(taskId, config),
    getPushConfig: (taskId, id) => agent.getPushConfig(taskId, id),
    listPushConfigs: async (taskId) => (await agent.listPushConfigs(taskId)).configs,
    deletePushConfig: (taskId, id) => agent.deletePushConfig(taskId, id),
    extendedCard: async () => factsOf(await agent.extendedCard()),
    codeOf(error) {
      // What cannot be a message is refused before it is sent.
      if (error instanceof TypeError && /is empty\./.test(error.message)) return "INVALID_PARAMS";
      return ProtocolError.is(error) || ConnectionError.is(error) ? error.code : String(error);
    },
  };
}

async function* events(iterable: ReturnType<RemoteAgent["stream"]>) {
  for await (const { event } of iterable) yield event;
}
