import type { Scenario } from "../scenario.ts";
import { bridgePairs } from "./bridge-pairs.ts";
import { dialects } from "./dialects.ts";
import { durability } from "./durability.ts";
import { gateway } from "./gateway.ts";
import { grpcSend, grpcStream } from "./grpc.ts";
import { housekeeping } from "./housekeeping.ts";
import { largeMessages } from "./large.ts";
import { linkFrames, linkSessions } from "./link.ts";
import { longTask } from "./long-task.ts";
import { lookup, postgresLookup } from "./lookup.ts";
import { postgresNodes, postgresSend, postgresStream } from "./postgres.ts";
import { registry } from "./registry.ts";
import { send } from "./send.ts";
import { startUp } from "./start-up.ts";
import { burst, longStream, paced } from "./stream.ts";
import { subscriptions } from "./subscriptions.ts";
import { webhooks } from "./webhooks.ts";
import { workflowChain, workflowSize } from "./workflow.ts";
import { workflowRuns } from "./workflow-runs.ts";

/** All scenarios in running order. To add one, add its file and a line here. */
export const scenarios: readonly Scenario[] = [
  send,
  burst,
  paced,
  durability,
  postgresSend,
  postgresStream,
  postgresNodes,
  dialects,
  grpcSend,
  grpcStream,
  gateway,
  bridgePairs,
  workflowChain,
  workflowSize,
  workflowRuns,
  webhooks,
  linkFrames,
  linkSessions,
  largeMessages,
  longTask,
  longStream,
  subscriptions,
  lookup,
  postgresLookup,
  registry,
  housekeeping,
  startUp,
];
