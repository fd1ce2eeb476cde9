/**
 * What is tested, as data. What a requirement means for a server is in the checks that show it; our own tests cite the ids
 * at the start of their titles. Ids are those of the public kit where it has one.
 */

export const LEVELS = ["MUST", "SHOULD", "MAY"] as const;
export type Level = (typeof LEVELS)[number];

export const VERSIONS = ["1.0", "0.3"] as const;
export type Version = (typeof VERSIONS)[number];

export const BINDINGS = ["JSONRPC", "HTTP+JSON", "GRPC"] as const;
export type Binding = (typeof BINDINGS)[number];

interface Requirement {
  readonly level: Level;
  readonly title: string;
  /** Where the specification of each version states it; a version without a section does not require it. */
  readonly sections: Readonly<Partial<Record<Version, string>>>;
}

const createRow =
  (level: Level) =>
  (title: string, v1?: string, v03?: string): Requirement => ({
    level,
    title,
    sections: { ...(v1 === undefined ? {} : { "1.0": v1 }), ...(v03 === undefined ? {} : { "0.3": v03 }) },
  });
const must = createRow("MUST");
const should = createRow("SHOULD");
const may = createRow("MAY");

/** Each with its section in 1.0, then in 0.3. */
const OBSERVABLE = {
  // Cards, versions, extensions and who may call.
  "CARD-DISC-001": must("The card is a JSON document that can be fetched", "8.2", "5.3"),
  "CARD-STRUCT-001": must("The card has every required member", "4.4.1", "5.5"),
  "CARD-PROTO-001": must("The card declares at least one interface", "8.3", "5.6.4"),
  "CARD-PROTO-002": must("Every interface of the card has its URL, binding and version", "8.3.1", "5.6.1"),
  "CARD-PROTO-003": must("The binding that a card declares for a URL is served there", "8.3.1", "5.6.2"),
  "CARD-JSON-001": must("The card is ProtoJSON in camelCase, each security scheme with exactly one member", "5.5"),
  "CARD-CACHE-001": should("The card is sent with Cache-Control and max-age", "8.6.1"),
  "CARD-CACHE-002": should("The card is sent with an ETag", "8.6.1"),
  "CARD-CACHE-003": may("The card is sent with Last-Modified", "8.6.1"),
  "CARD-SIGN-003": must("The protected header of a signature has alg, kid and typ", "8.4.2"),
  "CARD-EXT-001": must("The extended card is refused to callers who have not shown who they are", "3.1.11", "7.10"),
  "CARD-EXT-002": must("A declared extended card is returned, or refused as not configured", "3.1.11"),
  "CORE-CAP-003": must("An extended card that is not declared is an unsupported operation", "3.3.4"),
  "VER-SERVER-001": must("A request in the interface's version is understood", "3.6.2", "11.1.2"),
  "VER-SERVER-002": must("A version that is not supported is refused as such", "3.6.2"),
  "VER-SERVER-003": must("A request without a version is one in 0.3, unless only 1.0 has its method", "3.6.2"),
  "VER-CLIENT-002": must("The patch part of a version does not matter", "3.6"),
  "SVC-PARAM-001": must("Names of service parameters have no case", "3.2.6"),
  "SVC-PARAM-002": must("Extensions are a list with commas, and unknown ones are ignored", "3.2.6"),
  "EXT-FALLBACK-001": must("An extension that is not supported is never replaced by another version", "4.6.3"),
  "CORE-CAP-004": must("A required extension that was not asked for is an error", "3.3.4"),
  "AUTH-SERVER-002": must(
    "Operations are refused to callers without the credentials that the card requires",
    "7.4",
    "4.4",
  ),
  "AUTH-SCOPE-002": must("Lists hold the tasks of their caller only", "13.1", "4.6"),
  "AUTH-SCOPE-003": must("Tasks and push configs of another caller are as unknown ones", "3.3.2", "4.6"),
  "TENANT-001": must("A task is not visible under another tenant", "4.4.6"),
  "AUTH-INTASK-001": must(
    "A demand for authentication is a task in that state, with a message that explains it",
    "7.6.1",
    "4.5",
  ),
  "AUTH-INTASK-005": should("Streams stay open while authentication is required", "7.6.1"),

  // Sending, tasks and lists.
  "CORE-SEND-001": must("A send is answered with either a task or a message", "3.1.1", "7.1"),
  "CORE-SEND-002": must("A message to a task that has ended is refused", "3.1.1", "7.1"),
  "CORE-SEND-003": must("Content the agent does not take is refused", "3.1.1"),
  "CORE-EXECUTION-MODE-001": must("A send waits until the task has ended or is interrupted", "3.2.2"),
  "CORE-EXECUTION-MODE-002": must("returnImmediately gives the answer while the task runs", "3.2.2"),
  "CORE-EXECUTION-MODE-003": must("A blocking answer has all artifacts and the latest status", "3.2.2"),
  "CORE-EXECUTION-MODE-004": must("A blocking send returns when input or authentication is required", "3.2.2"),
  "CORE-MULTI-001a": must("A context id that was generated is in the answer", "3.4.1", "6.1"),
  "CORE-MULTI-002a": must("The context id of the client is taken or refused, never replaced", "3.4.1"),
  "CORE-MULTI-003": must("Task ids are made by the server and unique", "3.4.2", "6.1"),
  "CORE-MULTI-004": must("A message to an unknown task is refused and creates none", "3.4.2", "8.2"),
  "CORE-MULTI-005": must("A message with only a task id belongs to the context of the task", "3.4.3"),
  "CORE-MULTI-006": must("A context id other than that of the task is refused", "3.4.3"),
  "CORE-ERR-002": must("A missing required member is refused before any work starts", "3.3.2", "10.2"),
  "DM-PARTS-001": must("A message without parts is refused", "5.7"),
  "CORE-GET-001": must("A task can be read as it is", "3.1.3", "7.3"),
  "CORE-GET-002": must("An unknown task is not found", "3.1.3", "8.2"),
  "CORE-HIST-001": should("historyLength 0 leaves the history out", "3.2.4"),
  "CORE-HIST-002": must("historyLength is never exceeded, and the newest messages are kept", "3.2.4", "7.3.1"),
  "CORE-HIST-003": should("historyLength 0 with a message leaves the history out of the answer", "3.2.4"),
  "CORE-HIST-005": should("The history is in chronological order", "3.2.4"),
  "CORE-CANCEL-001": must("A task that has not ended can be cancelled and is returned as it is then", "3.1.5", "7.4"),
  "CORE-CANCEL-002": must("A task that has ended cannot be cancelled", "3.1.5", "8.2"),
  "CORE-CANCEL-003": must("An unknown task cannot be cancelled: not found", "3.1.5", "8.2"),
  "CORE-CANCEL-004": must("Two cancellations have the effect of one", "3.3.1"),
  "CORE-TASK-001": must("A task that has ended does not change any more", "4.1.3", "6.3"),
  "CORE-LIST-002": must("A walk over the pages gives each task once", "3.1.4"),
  "CORE-LIST-003": must("Lists are ordered by the time of the status, newest first", "3.1.4"),
  "CORE-LIST-004": must("Every page has its four members, the last one an empty token", "3.1.4"),
  "CORE-LIST-005": must("Artifacts are listed only when asked for", "3.1.4"),
  "CORE-LIST-006": must("Page sizes, tokens, states and lengths that make no sense are refused", "3.3.2"),
  "CORE-LIST-007": must("statusTimestampAfter includes the instant itself", "3.1.4"),
  "CORE-LIST-008": must("Lists are narrowed by context and state", "3.1.4"),

  // Streams and push notifications.
  "CORE-CAP-002": must("An agent that does not stream refuses both streaming operations", "3.3.4", "8.2"),
  "CORE-STREAM-001": must("A message can be sent for a stream of events", "3.1.2", "7.2"),
  "CORE-STREAM-002": must("A reply without a task is one event, then the stream ends", "3.1.2"),
  "CORE-STREAM-003": must("The stream of a task begins with the task and ends when the task does", "3.1.2"),
  "CORE-STREAM-004": must("What the events add up to is the task that can be read afterwards", "3.1.2", "7.2"),
  "STREAM-SUB-001": must("A subscription begins with the task as it is", "3.1.6"),
  "STREAM-SUB-002": must("A subscription ends when the task does", "3.1.6", "7.9"),
  "STREAM-SUB-003": must("Subscribing to a task that has ended is refused without a stream", "3.1.6"),
  "STREAM-SUB-004": must("Subscribing to an unknown task is refused without a stream", "3.1.6", "8.2"),
  "STREAM-ORDER-003": must("All streams of a task have the same events in the same order", "3.5.2"),
  "STREAM-ORDER-004": must("Closing one stream leaves the others alone", "3.5.2"),
  "STREAM-LEAVE-001": must("A task continues when its client leaves", "3.5.2"),
  "STREAM-FRAME-001": must("Events are framed as the binding specifies", "5.3", "3.3"),
  "CORE-CAP-001": must(
    "Without the capability, all operations on push configs are refused as unsupported",
    "3.3.4",
    "8.2",
  ),
  "PUSH-CREATE-001": must("A new push config gets an id and is returned", "3.1.7", "7.5"),
  "PUSH-INLINE-001": must("A push config sent with a message is there", "3.2.2", "7.1.1"),
  "PUSH-GET-001": must("A push config can be read", "3.1.8", "7.6"),
  "PUSH-GET-002": must("Reading a push config that does not exist fails", "3.1.8", "7.6"),
  "PUSH-LIST-001": must("All push configs of a task are listed", "3.1.9", "7.7"),
  "PUSH-DEL-001": must("A deleted push config is gone", "3.1.10", "7.8"),
  "PUSH-DEL-002": must("Deleting a push config twice is not an error", "3.1.10"),
  "PUSH-DELIVER-001": must("Webhooks get the credentials they were registered with", "4.3.3"),
  "PUSH-DELIVER-002": must("Every webhook is called at least once", "4.3.3", "9.5"),
  "PUSH-DELIVER-003": must(
    "The body of a webhook is what the version specifies: a stream response, or the task in 0.3",
    "4.3.3",
    "9.5",
  ),
  "PUSH-DELIVER-004": should("A webhook has the version's content type, and in 0.3 the token's header", "4.3.3", "9.5"),
  "PUSH-SSRF-001": should("Link-local webhook targets are refused", "13.2", "10.2"),

  // How values are encoded in each binding, and that all bindings mean the same.
  "DM-TASK-001": must("Tasks, statuses and events have every required member", "4.1.1", "6.1"),
  "DM-MSG-001": must("Messages have every required member", "4.1.4", "6.4"),
  "DM-ART-001": must("Artifacts have every required member", "4.1.7", "6.7"),
  "DM-PART-001": must("A part is exactly one of its kinds, and so are answers and events", "4.1.6", "6.5"),
  "DM-PART-002": must("Empty text and null data are content and come back", "4.1.6"),
  "DM-BYTES-001": must("Bytes come back as they were sent", "4.1.6", "6.6.1"),
  "DM-SERIAL-001": must("Members are named in camelCase", "5.5", "6"),
  "DM-SERIAL-002": must("States and roles are spelled as the version and binding specify", "5.5", "6.3"),
  "DM-SERIAL-003": must("Timestamps are in UTC with Z", "5.6.1"),
  "DM-SERIAL-005": should("Unknown members are ignored", "5.7"),
  "DM-SERIAL-006": must("No payload has the members kind, type or final", "A.2.1"),
  "V03-KIND-001": must("Objects in JSON-RPC are distinguished by kind", undefined, "6"),
  "V03-FINAL-001": must("Status updates state whether they are final", undefined, "7.2.2"),
  "V03-SUB-001": should("Subscribing over HTTP+JSON takes GET and POST", undefined, "7.9"),
  "V03-PUSH-001": should("Push configs over HTTP+JSON are taken with and without an envelope", undefined, "7.5"),
  "JSONRPC-FMT-001": must("Answers are JSON-RPC 2.0 responses with the id of the request", "9.1", "6.11"),
  "JSONRPC-FMT-002": must("JSON-RPC answers are application/json", "9.1", "3.2.1"),
  "JSONRPC-ERR-001": must(
    "Bodies that are not JSON, invalid requests, unknown methods and invalid parameters get the standard codes",
    "9.5",
    "8.1",
  ),
  "JSONRPC-ERR-003": should("JSON-RPC errors of A2A carry an ErrorInfo of the protocol's domain", "9.5"),
  "JSONRPC-ERR-004": must("The data of a JSON-RPC error is a list of objects that name their type", "9.5"),
  "JSONRPC-ERR-005": should(
    "Errors of the envelope come with HTTP 200, also for a request without an id",
    "9.5",
    "8.1",
  ),
  "ERR-CODE-001": must("Errors have the code or status of the table", "5.4", "8.2"),
  "HTTP_JSON-SVC-001": should("HTTP answers are application/a2a+json", "11.1"),
  "HTTP_JSON-URL-001": must("Unknown routes are refused, and so is a body that is not JSON", "11.3", "3.5.3"),
  "HTTP_JSON-ERR-001": must("HTTP errors are a google.rpc.Status whose details name their types", "11.6"),
  "HTTP_JSON-ERR-002": must("HTTP errors of A2A carry an ErrorInfo of the protocol's domain", "11.6"),
  "GRPC-ERR-001": must("gRPC errors of A2A carry an ErrorInfo of the protocol's domain", "10.6"),
  "GRPC-SVC-002": must("Bytes that are not a message, and unknown methods, are refused", "10.1", "3.2.2"),
  "BIND-EQUIV-001": must("Every operation is known in every binding", "5.1", "3.4.1"),
  "BIND-EQUIV-002": must("A task is the same in every binding", "5.1", "3.4.1"),
  "BIND-EQUIV-003": must("The same request is refused for the same reason in every binding", "5.1", "3.4.1"),
};

/** Have no check, only tests of our own: they cannot be observed from outside a server. */
const UNOBSERVABLE = {
  // Rules for clients.
  "CLIENT-IFACE-001": must("The first supported interface is called, at its URL", "8.3.2", "5.6.3"),
  "CLIENT-TENANT-001": must("The tenant of the interface is sent, and none otherwise", "8.3.2"),
  "VER-CLIENT-001": must("Every request carries A2A-Version", "3.6.1"),
  "CARD-SIGN-004": must("Any change makes verification fail", "8.4.3"),
  "CLIENT-STREAM-001": must("The reader of streams copes with all legal framing", "9.1", "3.3"),

  // Need the signer's key and the card before it was signed.
  "CARD-SIGN-001": must("The payload is in the canonical form of RFC 8785", "8.4.1"),
  "CARD-SIGN-002": must("The signatures themselves are not signed", "8.4.1"),
  "CARD-SIGN-005": must("Optional members set to their default are in the payload", "8.4.1"),
  "CARD-SIGN-006": must("Other members at their default are not in the payload", "8.4.1"),

  // A rule for receivers of webhooks, and one for logs.
  "PUSH-RECEIVER-001": must("Receivers of webhooks verify what they get", "13.2", "10.2"),
  "SEC-LOG-001": must("Logs hold no credentials", "13.4"),
};

const ROWS = { ...OBSERVABLE, ...UNOBSERVABLE };

export type RequirementId = keyof typeof ROWS;

export const REQUIREMENTS: Readonly<Record<RequirementId, Requirement>> = ROWS;
/** Those that a server can be checked for. */
export const REQUIREMENT_IDS = Object.keys(OBSERVABLE) as readonly RequirementId[];

/** Whether servers of that version are asked for it, at one of the levels down to the given one. */
export function isApplicable(id: RequirementId, version: Version, lowest: Level = "MAY"): boolean {
  const { level, sections } = REQUIREMENTS[id];
  return sections[version] !== undefined && LEVELS.indexOf(level) <= LEVELS.indexOf(lowest);
}
