import type { Scenario } from "../scenario.ts";
import { grpcSend, grpcStream } from "./grpc.ts";
import { linkFrames, linkSessions } from "./link.ts";
import { longTask } from "./long-task.ts";
import { lookup } from "./lookup.ts";
import { send } from "./send.ts";
import { startUp } from "./start-up.ts";
import { burst, longStream, paced } from "./stream.ts";
import { subscriptions } from "./subscriptions.ts";

/** All scenarios in running order. To add one, add its file and a line here. */
export const scenarios: readonly Scenario[] = [
  send,
  burst,
  paced,
  grpcSend,
  grpcStream,
  linkFrames,
  linkSessions,
  longTask,
  longStream,
  subscriptions,
  lookup,
  startUp,
];
