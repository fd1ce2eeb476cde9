import type { Exception } from "./exception.ts";
import { type Pair, SDK_V1, SDK_V03 } from "./pairs.ts";

const old = ({ version }: Pair) => version === "0.3";
const overJsonRpc = ({ binding }: Pair) => binding === "JSONRPC";
const overHttp = ({ binding }: Pair) => binding === "HTTP+JSON";
const overGrpc = ({ binding }: Pair) => binding === "GRPC";
const clientV1 = ({ client }: Pair) => client === SDK_V1;
const clientV03 = ({ client }: Pair) => client === SDK_V03;
const serverV1 = ({ server }: Pair) => server === SDK_V1;
const serverV03 = ({ server }: Pair) => server === SDK_V03;

type Test = (pair: Pair) => boolean;
const all =
  (...tests: Test[]): Test =>
  (pair) =>
    tests.every((test) => test(pair));
const any =
  (...tests: Test[]): Test =>
  (pair) =>
    tests.some((test) => test(pair));
const not =
  (test: Test): Test =>
  (pair) =>
    !test(pair);

/** In both SDKs, what 0.3 says over HTTP and gRPC passes through code made of the proto as it was first tagged. */
const byProto = all(old, not(overJsonRpc));

/** Every cell of the matrix that does not simply work. */
export const EXCEPTIONS: readonly Exception[] = [
  {
    scenarios: ["list tasks"],
    applies: old,
    cell: "not in this dialect: 0.3 cannot list tasks.",
    fails: /cannot list tasks|UNSUPPORTED_OPERATION|tasks\/list/,
  },
  {
    scenarios: ["names of files"],
    applies: byProto,
    cell: "peer's limit: The SDK knows no name of a file here: it reads the proto as first tagged, before the field was added.",
    fails: /^(?!.*four bytes).*AAECAw==/,
  },
  {
    scenarios: ["stream in pieces"],
    applies: all(byProto, any(clientV1, clientV03)),
    cell: "peer's limit: The client drops `append` and `lastChunk` of a piece; all pieces arrive, in order.",
    fails: /^\[false,false,false\]$/,
  },
  {
    scenarios: ["nothing inside data"],
    applies: all(overGrpc, clientV03),
    cell: "peer's limit: The client cannot put a null into a message and fails before it sends.",
    fails: /Request message serialization failure/,
  },
  {
    scenarios: ["nothing inside data"],
    applies: all(overGrpc, serverV03),
    cell: "peer's limit: The server takes null for the number 0.",
    fails: /"nothing":0,"list":\[0,1\]/,
  },
  {
    scenarios: ["subscribe: no such task"],
    applies: all(old, overJsonRpc, any(clientV1, clientV03)),
    cell: "peer's limit: What goes wrong with a stream is thrown as a plain error; the typed one is its cause.",
    fails: /^TASK_NOT_FOUND inside another error$/,
  },
  {
    scenarios: ["stream: an empty message"],
    applies: all(old, overJsonRpc, clientV1),
    cell: "peer's limit: What goes wrong with a stream is thrown as a plain error; the typed one is its cause.",
    fails: /^INVALID_PARAMS inside another error$/,
  },
  {
    scenarios: ["send: an empty message", "stream: an empty message"],
    applies: all(clientV03, not(overGrpc)),
    cell: "peer's limit: The client has no class for invalid parameters; the number -32602 is in the error's text.",
    fails: /^untyped -32602$/,
  },
  {
    scenarios: ["send: an empty message", "stream: an empty message", "send: a media type not taken"],
    applies: all(clientV03, overGrpc),
    cell: "peer's limit: The client has no class for INVALID_ARGUMENT; the status is in the error's text.",
    fails: /^untyped 3$/,
  },
  {
    scenarios: ["send: already ended"],
    applies: all(clientV03, overGrpc),
    cell: "peer's limit: The client has no class for UNIMPLEMENTED to a sent message; the status is in the error's text.",
    fails: /^untyped 12$/,
  },
  {
    scenarios: ["send: already ended"],
    applies: all(serverV03, not(overGrpc)),
    cell: "peer's limit: The server calls it an invalid request.",
    fails: /^INVALID_REQUEST$/,
  },
  {
    scenarios: ["send: already ended"],
    applies: all(serverV03, overGrpc),
    cell: "peer's limit: The server says INVALID_ARGUMENT and nothing else.",
    fails: /^INVALID_PARAMS$/,
  },
  {
    scenarios: ["subscribe: already ended"],
    applies: all(old, not(serverV1)),
    cell: "not in this dialect: 0.3 does not refuse this, it answers with the task as it ended.",
    fails: /^nothing was refused$/,
  },
  {
    scenarios: ["subscribe after the end"],
    applies: not(old),
    cell: "not in this dialect: 1.0 refuses this.",
    fails: /UnsupportedOperationError|UNSUPPORTED_OPERATION/,
  },
  {
    scenarios: ["subscribe after the end"],
    applies: all(old, serverV1),
    cell: "peer's limit: The server refuses this in 0.3 as it does in 1.0.",
    fails: /UNSUPPORTED_OPERATION/,
  },
  {
    scenarios: ["subscribe: no such task"],
    applies: all(serverV03, overHttp),
    cell: "peer's limit: The server trips over its own refusal and answers with an internal error.",
    fails: /^INTERNAL_ERROR$/,
  },
  {
    scenarios: ["send: a media type not taken"],
    applies: serverV03,
    cell: "peer's limit: The server takes any media type, whatever its card says.",
    fails: /^nothing was refused$/,
  },
];
