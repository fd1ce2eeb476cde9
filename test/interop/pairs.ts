import { driveDragoman } from "./clients/dragoman.ts";
import { driveSdkV1 } from "./clients/sdk-v1.ts";
import { driveSdkV03 } from "./clients/sdk-v03.ts";
import type { Driver } from "./driver.ts";
import type { Gates } from "./gates.ts";
import { serveDragoman } from "./servers/dragoman.ts";
import type { RunningServer, ServerFeatures } from "./servers/profile.ts";
import { serveSdkV1 } from "./servers/sdk-v1.ts";
import { serveSdkV03 } from "./servers/sdk-v03.ts";

const DRAGOMAN = "dragoman";
export const SDK_V1 = "@a2a-js/sdk 1.3.0";
export const SDK_V03 = "@a2a-js/sdk 0.3.14";

export const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
type Binding = (typeof BINDINGS)[number];

/** A client and a server that have never seen each other's code, and what they speak. */
export interface Pair {
  readonly name: string;
  readonly client: string;
  readonly server: string;
  readonly binding: Binding;
  readonly version: "1.0" | "0.3";
  serve(features: ServerFeatures, gates: Gates): Promise<RunningServer>;
  drive(url: string): Promise<Driver>;
}

type Serve = Pair["serve"];
type Drive = (url: string, binding: string, version: string) => Promise<Driver>;

function pairsOf(client: [string, Drive], server: [string, Serve], version: Pair["version"]): Pair[] {
  return BINDINGS.map((binding) => ({
    name: `${client[0]} → ${server[0]}, ${binding} ${version}`,
    client: client[0],
    server: server[0],
    binding,
    version,
    serve: server[1],
    drive: (url) => client[1](url, binding, version),
  }));
}

/** Every column of the matrix. */
export const PAIRS: readonly Pair[] = [
  ...pairsOf([SDK_V1, driveSdkV1], [DRAGOMAN, serveDragoman], "1.0"),
  ...pairsOf([SDK_V1, driveSdkV1], [DRAGOMAN, serveDragoman], "0.3"),
  ...pairsOf([SDK_V03, driveSdkV03], [DRAGOMAN, serveDragoman], "0.3"),
  ...pairsOf([DRAGOMAN, driveDragoman], [SDK_V1, serveSdkV1], "1.0"),
  ...pairsOf([DRAGOMAN, driveDragoman], [SDK_V1, serveSdkV1], "0.3"),
  ...pairsOf([DRAGOMAN, driveDragoman], [SDK_V03, serveSdkV03], "0.3"),
];
