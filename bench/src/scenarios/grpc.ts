import { type GrpcLoad, runGrpcLoad } from "../client/grpc-load.ts";
import type { Contestant } from "../contestants/launch.ts";
import { type AgentName, chunkBytes } from "../contestants/protocol.ts";
import { comparison, type Entry } from "../scenario.ts";

const sessions = 4;
const sendsEach = 16;
const streamsEach = 2;
const chunks = 200;

function entriesFor(agent: AgentName, share: number): Entry[] {
  return [
    { label: "bare grpc-js", contestant: "bare-grpc", agent, store: "memory" },
    { label: "dragoman gRPC", contestant: "dragoman", agent, store: "memory" },
    { label: "a2a-js gRPC", contestant: "a2a-js", agent, store: "memory", share },
  ];
}

function loadOf(load: Omit<GrpcLoad, "port" | "sessions">) {
  return ({ grpcPort = Number.NaN }: Contestant) =>
    (count: number) =>
      runGrpcLoad({ ...load, port: grpcPort, sessions }, count);
}

const setup =
  "@a2a-js/sdk serves its gRPC service with grpc-js; tasks are in memory, three events each. Bare grpc-js is the library " +
  "alone, without a codec:";

export const grpcSend = comparison({
  name: "grpc-send",
  title: `blocking send over gRPC, tasks in memory, ${sessions * sendsEach} calls at a time`,
  setup: `${setup} it returns the bytes it received.`,
  targets: [
    { measure: "cpuMicros", of: "a2a-js gRPC", times: "dragoman gRPC", atLeast: 3.5 },
    { measure: "cpuMicros", of: "dragoman gRPC", times: "bare grpc-js", atMost: 1.6 },
  ],
  entries: entriesFor("echo", 0.25),
  counts: { warmUp: 15_000, measured: 25_000, quick: 800 },
  load: loadOf({ method: "SendMessage", text: "hello", callsEach: sendsEach, textBytes: 0 }),
});

export const grpcStream = comparison({
  name: "grpc-stream",
  title: `streaming send over gRPC, ${chunks} chunks of ${chunkBytes} bytes, ${sessions * streamsEach} streams; per stream`,
  setup: `${setup} it writes as many messages of the same length.`,
  targets: [{ measure: "cpuMicros", of: "a2a-js gRPC", times: "dragoman gRPC", atLeast: 30 }],
  entries: entriesFor("stream", 0.04),
  counts: { warmUp: 800, measured: 1_200, quick: 100 },
  load: loadOf({
    method: "SendStreamingMessage",
    text: `${chunks} 0`,
    callsEach: streamsEach,
    textBytes: chunks * chunkBytes,
  }),
});
