import type { Scenario } from "../scenario.ts";
import { grpcSend, grpcStream } from "./grpc.ts";
import { linkFrames } from "./link-frames.ts";
import { linkSessions } from "./link-sessions.ts";
import { longStream } from "./long-stream.ts";
import { longTask } from "./long-task.ts";
import { lookup } from "./lookup.ts";
import { sendMemory, sendSqlite } from "./send.ts";
import { startUp } from "./start-up.ts";
import { stream } from "./stream.ts";
import { subscriptions } from "./subscriptions.ts";

/** All scenarios in running order. To add one, add its file and a line here. */
export const scenarios: readonly Scenario[] = [
  sendMemory,
  sendSqlite,
  stream,
  subscriptions,
  lookup,
  longTask,
  longStream,
  grpcSend,
  grpcStream,
  linkFrames,
  linkSessions,
  startUp,
];
