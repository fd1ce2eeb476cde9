import { type GrpcLoad, runGrpcLoad } from "../client/grpc-load.ts";
import type { Contestant } from "../contestants/launch.ts";
import { chunkBytes } from "../contestants/protocol.ts";
import { type Context, compare, costOf, type Entry, type Scenario } from "../scenario.ts";

const sessions = 4;
const sendsEach = 16;
const streamsEach = 2;
const chunks = 200;

function measure(context: Context, load: (port: number) => GrpcLoad) {
  return async (contestant: Contestant) => {
    const grpc = load(contestant.grpcPort ?? Number.NaN);
    let framesEach = 0;
    const run = async (seconds: number) => {
      const result = await runGrpcLoad(grpc, { seconds });
      framesEach = result.frames / result.completed;
      return result;
    };
    await run(context.size(1.5, 0.3));
    const cost = await costOf(contestant, () => run(context.size(2.5, 0.4)));
    return grpc.method === "SendMessage" ? cost : { ...cost, framesEach };
  };
}

const sendEntries: Entry[] = [
  { label: "dragoman gRPC", contestant: "dragoman", agent: "echo", store: "memory" },
  { label: "a2a-js gRPC", contestant: "a2a-js", agent: "echo", store: "memory" },
  { label: "bare grpc-js", contestant: "bare-grpc", agent: "echo", store: "memory" },
];

export const grpcSend: Scenario = {
  name: "grpc-send",
  title: `blocking send over gRPC, tasks in memory, ${sessions * sendsEach} calls at a time`,
  targets: [{ measure: "perSecond", of: "dragoman gRPC", times: "a2a-js gRPC", atLeast: 3 }],
  run: (context, record) =>
    compare(
      context,
      record,
      sendEntries,
      measure(context, (port) => ({
        port,
        method: "SendMessage",
        text: "hello",
        sessions,
        callsEach: sendsEach,
        textBytes: 0,
      })),
    ),
};

export const grpcStream: Scenario = {
  name: "grpc-stream",
  title: `streaming send over gRPC, ${chunks} chunks of ${chunkBytes} bytes, ${sessions * streamsEach} streams at a time`,
  targets: [{ measure: "perSecond", of: "dragoman gRPC", times: "a2a-js gRPC", atLeast: 20 }],
  run: (context, record) =>
    compare(
      context,
      record,
      sendEntries.slice(0, 2).map((entry) => ({ ...entry, agent: "stream" as const })),
      measure(context, (port) => ({
        port,
        method: "SendStreamingMessage",
        text: String(chunks),
        sessions,
        callsEach: streamsEach,
        textBytes: chunks * chunkBytes,
      })),
    ),
};
