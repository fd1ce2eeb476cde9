import {
  connectionFlood,
  halfOpenUpgrades,
  handshakes,
  mediumChunks,
  openHandshakes,
  registryPosts,
  slowHeaders,
  unreadCatalogs,
} from "./connections.ts";
import { forgedTokens } from "./forged-tokens.ts";
import { fullLogDisk } from "./full-log-disk.ts";
import { halfSentBodies } from "./half-sent-bodies.ts";
import { headerReferences } from "./header-references.ts";
import { slowChecks, upstreamFloods } from "./hostile-upstream.ts";
import { idleGrpcConnections } from "./idle-grpc-connections.ts";
import type { Attack } from "./kit/attack.ts";
import { deadline, hold } from "./kit/sockets.ts";
import { manyKeys } from "./many-keys.ts";
import { guessedNotifications, knownNotifications } from "./notifications.ts";
import {
  continuations,
  healthWatches,
  pings,
  rapidResets,
  reflectionErrors,
  reflectionQuestions,
  settings,
} from "./open-services.ts";
import { openGrpcStreams, openHttp2Streams } from "./open-streams.ts";
import { batchedLongHeader, batchedManyHeaders, batchedRequests, pipelinedRequests } from "./pipelined-requests.ts";
import { tinyChunks } from "./tiny-chunks.ts";
import { wrongKeys } from "./wrong-keys.ts";

export const ATTACKS: readonly Attack[] = [
  { name: "none", what: "nothing, to compare with", run: (target) => hold(deadline(target)) },
  tinyChunks,
  openGrpcStreams,
  openHttp2Streams,
  manyKeys,
  pipelinedRequests,
  headerReferences,
  wrongKeys,
  halfSentBodies,
  idleGrpcConnections,
  batchedRequests,
  batchedLongHeader,
  batchedManyHeaders,
  mediumChunks,
  ...forgedTokens,
  healthWatches,
  reflectionQuestions,
  reflectionErrors,
  pings,
  settings,
  rapidResets,
  continuations,
  openHandshakes,
  handshakes,
  unreadCatalogs,
  slowHeaders,
  halfOpenUpgrades,
  registryPosts,
  connectionFlood,
  ...upstreamFloods,
  slowChecks,
  fullLogDisk,
  guessedNotifications,
  knownNotifications,
];
