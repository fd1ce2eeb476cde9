import { runLoad, sends } from "../client/load.ts";
import type { Contestant } from "../contestants/launch.ts";
import { type Context, compare, costOf, type Entry, type Scenario } from "../scenario.ts";

const connections = 64;

function measureSends(context: Context) {
  return async (contestant: Contestant) => {
    const load = (seconds: number) => runLoad(contestant, connections, { seconds }, sends(contestant));
    await load(context.size(1.5, 0.3));
    return costOf(contestant, () => load(context.size(2, 0.4)));
  };
}

const dragomanMemory: Entry = { label: "dragoman memory", contestant: "dragoman", agent: "echo", store: "memory" };
const dragomanSqlite: Entry = { label: "dragoman SQLite", contestant: "dragoman", agent: "echo", store: "sqlite" };
const rivalMemory: Entry = { label: "a2a-js memory", contestant: "a2a-js", agent: "echo", store: "memory" };
const rivalSqlite: Entry = { label: "a2a-js SQLite", contestant: "a2a-js", agent: "echo", store: "sqlite" };
const bare: Entry = { label: "bare node:http", contestant: "bare", agent: "echo", store: "memory" };

export const sendMemory: Scenario = {
  name: "send-memory",
  title: `blocking send, tasks in memory, ${connections} connections`,
  targets: [
    { measure: "perSecond", of: dragomanMemory.label, times: rivalMemory.label, atLeast: 8 },
    { measure: "cpuMicros", of: dragomanMemory.label, times: bare.label, atMost: 1.5 },
  ],
  run: (context, record) => compare(context, record, [dragomanMemory, rivalMemory, bare], measureSends(context)),
};

export const sendSqlite: Scenario = {
  name: "send-sqlite",
  title: `blocking send, an answered task is on disk (SQLite), ${connections} connections`,
  targets: [
    { measure: "perSecond", of: dragomanSqlite.label, times: rivalSqlite.label, atLeast: 10 },
    { measure: "perSecond", of: dragomanSqlite.label, times: rivalMemory.label, atLeast: 2 },
  ],
  run: (context, record) => compare(context, record, [dragomanSqlite, rivalSqlite, rivalMemory], measureSends(context)),
};
