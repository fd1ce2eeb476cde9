import type { RequirementRows } from "./index.ts";

/** How things are written in each binding, and that all bindings mean the same. */
export const BINDING_REQUIREMENTS = {
  "DM-TASK-001": {
    level: "MUST",
    sections: { "1.0": "4.1.1", "0.3": "6.1" },
    title: "Tasks, statuses and events have every required member",
  },
  "DM-MSG-001": {
    level: "MUST",
    sections: { "1.0": "4.1.4", "0.3": "6.4" },
    title: "Messages have every required member",
  },
  "DM-ART-001": {
    level: "MUST",
    sections: { "1.0": "4.1.7", "0.3": "6.7" },
    title: "Artifacts have every required member",
  },
  "DM-PART-001": {
    level: "MUST",
    sections: { "1.0": "4.1.6", "0.3": "6.5" },
    title: "A part is exactly one of its kinds, and so are answers and events",
  },
  "DM-PART-002": {
    level: "MUST",
    sections: { "1.0": "4.1.6" },
    title: "Empty text and null data are content and come back",
  },
  "DM-BYTES-001": {
    level: "MUST",
    sections: { "1.0": "4.1.6", "0.3": "6.6.1" },
    title: "Bytes come back as they were sent",
  },
  "DM-SERIAL-001": {
    level: "MUST",
    sections: { "1.0": "5.5", "0.3": "6" },
    title: "Members are named in camelCase",
  },
  "DM-SERIAL-002": {
    level: "MUST",
    sections: { "1.0": "5.5", "0.3": "6.3" },
    title: "States and roles are spelled as the version and binding say",
  },
  "DM-SERIAL-003": {
    level: "MUST",
    sections: { "1.0": "5.6.1" },
    title: "Timestamps are in UTC with Z",
  },
  "DM-SERIAL-005": {
    level: "SHOULD",
    sections: { "1.0": "5.7" },
    title: "Unknown members are ignored",
  },
  "DM-SERIAL-006": {
    level: "MUST",
    sections: { "1.0": "A.2.1" },
    title: "No payload has the members kind, type or final",
  },
  "V03-KIND-001": {
    level: "MUST",
    sections: { "0.3": "6" },
    title: "Objects in JSON-RPC are distinguished by kind",
  },
  "V03-FINAL-001": {
    level: "MUST",
    sections: { "0.3": "7.2.2" },
    title: "Status updates say whether they are final",
  },
  "V03-SUB-001": {
    level: "SHOULD",
    sections: { "0.3": "7.9" },
    title: "Subscribing over HTTP+JSON takes GET and POST",
  },
  "V03-PUSH-001": {
    level: "SHOULD",
    sections: { "0.3": "7.5" },
    title: "Push configs over HTTP+JSON are taken with and without an envelope",
  },
  "JSONRPC-FMT-001": {
    level: "MUST",
    sections: { "1.0": "9.1", "0.3": "6.11" },
    title: "Answers are JSON-RPC 2.0 responses with the id of the request",
  },
  "JSONRPC-FMT-002": {
    level: "MUST",
    sections: { "1.0": "9.1", "0.3": "3.2.1" },
    title: "JSON-RPC answers are application/json",
  },
  "JSONRPC-ERR-001": {
    level: "MUST",
    sections: { "1.0": "9.5", "0.3": "8.1" },
    title: "Bodies that are not JSON, invalid requests, unknown methods and invalid parameters get the standard codes",
  },
  "JSONRPC-ERR-003": {
    level: "SHOULD",
    sections: { "1.0": "9.5" },
    title: "JSON-RPC errors of A2A carry an ErrorInfo of the protocol's domain",
  },
  "JSONRPC-ERR-004": {
    level: "MUST",
    sections: { "1.0": "9.5" },
    title: "The data of a JSON-RPC error is a list of objects that name their type",
  },
  "JSONRPC-ERR-005": {
    level: "SHOULD",
    sections: { "1.0": "9.5", "0.3": "8.1" },
    title: "Errors of the envelope come with HTTP 200, also for a request without an id",
  },
  "ERR-CODE-001": {
    level: "MUST",
    sections: { "1.0": "5.4", "0.3": "8.2" },
    title: "Errors have the code or status of the table",
  },
  "HTTP_JSON-SVC-001": {
    level: "SHOULD",
    sections: { "1.0": "11.1" },
    title: "HTTP answers are application/a2a+json",
  },
  "HTTP_JSON-URL-001": {
    level: "MUST",
    sections: { "1.0": "11.3", "0.3": "3.5.3" },
    title: "Unknown routes are refused, and so is a body that is not JSON",
  },
  "HTTP_JSON-ERR-001": {
    level: "MUST",
    sections: { "1.0": "11.6" },
    title: "HTTP errors are a google.rpc.Status whose details name their types",
  },
  "HTTP_JSON-ERR-002": {
    level: "MUST",
    sections: { "1.0": "11.6" },
    title: "HTTP errors of A2A carry an ErrorInfo of the protocol's domain",
  },
  "GRPC-ERR-001": {
    level: "MUST",
    sections: { "1.0": "10.6" },
    title: "gRPC errors of A2A carry an ErrorInfo of the protocol's domain",
  },
  "GRPC-SVC-002": {
    level: "MUST",
    sections: { "1.0": "10.1", "0.3": "3.2.2" },
    title: "Bytes that are not a message, and unknown methods, are refused",
  },
  "BIND-EQUIV-001": {
    level: "MUST",
    sections: { "1.0": "5.1", "0.3": "3.4.1" },
    title: "Every operation is known in every binding",
  },
  "BIND-EQUIV-002": {
    level: "MUST",
    sections: { "1.0": "5.1", "0.3": "3.4.1" },
    title: "A task is the same in every binding",
  },
  "BIND-EQUIV-003": {
    level: "MUST",
    sections: { "1.0": "5.1", "0.3": "3.4.1" },
    title: "The same request is refused for the same reason in every binding",
  },
} as const satisfies RequirementRows;
