/** An upstream whose connection is cut at each frame of an answer, in each dialect: nothing is lost, nothing comes twice. */
import { connect as connectSocket, createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { textOf } from "../../src/core/model/message.ts";
import { HTTP_BINDINGS } from "../support/bindings.ts";
import { startGateway, startUpstream, UPSTREAMS } from "../support/gateway.ts";
import { freePort, listen } from "../support/lifecycle.ts";
import { WireClient } from "../support/wire-client.ts";

const [JSON_RPC] = HTTP_BINDINGS;

/** Passes bytes on to a port, and cuts the connection of the next stream after some of its frames. */
async function startCutter(target: () => number, countFrames: (answer: Buffer) => number) {
  let frames: number | undefined;
  let cuts = 0;
  const server = createServer((client) => {
    const upstream = connectSocket(target(), "127.0.0.1");
    let answer = Buffer.alloc(0);
    const end = () => {
      for (const socket of [client, upstream]) socket.destroy();
    };
    upstream.on("data", (chunk) => {
      client.write(chunk);
      answer = Buffer.concat([answer, chunk]);
      if (frames === undefined || countFrames(answer) < frames) return;
      frames = undefined;
      cuts++;
      end();
    });
    client.on("data", (chunk) => {
      answer = Buffer.alloc(0);
      upstream.write(chunk);
    });
    for (const socket of [client, upstream]) socket.on("error", end).on("close", end);
  });
  const port = await listen(server);
  return {
    port,
    arm(after: number) {
      frames = after;
    },
    /** Whether the connection was cut since it was armed. */
    disarm() {
      const before = cuts;
      frames = undefined;
      cuts = 0;
      return before > 0;
    },
  };
}

/** Complete server-sent events of an answer, and its head as the first. */
function countEvents(answer: Buffer): number {
  const text = answer.toString("latin1");
  return text.includes("text/event-stream") ? text.split(/\r?\n\r?\n/).length - 1 : 0;
}

/** Frames of HTTP/2 with data of a call. */
function countDataFrames(answer: Buffer): number {
  let count = 0;
  for (let at = 0; at + 9 <= answer.length; at += 9 + answer.readUIntBE(at, 3)) if (answer[at + 3] === 0) count++;
  return count;
}

describe.each(UPSTREAMS.filter(({ dialect }) => dialect !== "xiaoyi-http"))("$name", ({ name, remote }) => {
  test("an answer arrives whole wherever its stream is cut", async () => {
    const ports = { http: await freePort(), grpc: await freePort() };
    const isGrpc = name.endsWith("gRPC");
    const http = await startCutter(() => ports.http, isGrpc ? () => 0 : countEvents);
    const grpc = await startCutter(() => ports.grpc, countDataFrames);
    const { server, stage } = await startUpstream({
      port: ports.http,
      grpcPort: ports.grpc,
      publicUrl: `http://127.0.0.1:${http.port}`,
      grpcPublicUrl: `127.0.0.1:${grpc.port}`,
    });
    const gateway = await startGateway({ far: remote(server) });
    const client = new WireClient(JSON_RPC, `${gateway.url}/agents/far`);
    const cutter = isGrpc ? grpc : http;
    let cuts = 0;
    for (let frames = 1; frames <= 8; frames++) {
      cutter.arm(frames);
      const script = `work Thinking; artifact first; hold ${name}-${frames}; chunks 3; work Writing`;
      const stream = await client.stream(script);
      const { id } = await stream.task();
      await stage.reached(`${name}-${frames}`);
      stage.open(`${name}-${frames}`);
      await stream.rest();
      if (cutter.disarm()) cuts++;
      const done = await client.get(id);
      const texts = (done.artifacts ?? []).map(({ parts }) => textOf(parts as never).replaceAll("\n", ""));
      const said = (done.history ?? []).slice(1).map(({ parts }) => parts[0]?.text);
      expect({ frames, state: done.status.state, texts }).toEqual({
        frames,
        state: "TASK_STATE_COMPLETED",
        texts: ["first", "0,1,2,"],
      });
      expect(new Set(said).size, `${frames}: ${said.join(", ")}`).toBe(said.length);
      expect(stage.started.filter((started) => started === script)).toHaveLength(1);
    }
    expect(cuts).toBeGreaterThan(1);
  });
});
