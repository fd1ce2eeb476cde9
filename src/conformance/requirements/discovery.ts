import type { RequirementRows } from "./index.ts";

/** Cards, versions, extensions and who may call. Ids are those of the public kit where it has one. */
export const DISCOVERY_REQUIREMENTS = {
  "CARD-DISC-001": {
    level: "MUST",
    sections: { "1.0": "8.2", "0.3": "5.3" },
    title: "The card is a JSON document that can be fetched",
  },
  "CARD-STRUCT-001": {
    level: "MUST",
    sections: { "1.0": "4.4.1", "0.3": "5.5" },
    title: "The card has every required member",
  },
  "CARD-PROTO-001": {
    level: "MUST",
    sections: { "1.0": "8.3", "0.3": "5.6.4" },
    title: "The card declares at least one interface",
  },
  "CARD-PROTO-002": {
    level: "MUST",
    sections: { "1.0": "8.3.1", "0.3": "5.6.1" },
    title: "Every interface of the card has its URL, binding and version",
  },
  "CARD-PROTO-003": {
    level: "MUST",
    sections: { "1.0": "8.3.1", "0.3": "5.6.2" },
    title: "The binding that a card declares for a URL is served there",
  },
  "CARD-JSON-001": {
    level: "MUST",
    sections: { "1.0": "5.5" },
    title: "The card is ProtoJSON in camelCase, each security scheme with exactly one member",
  },
  "CARD-CACHE-001": {
    level: "SHOULD",
    sections: { "1.0": "8.6.1" },
    title: "The card is sent with Cache-Control and max-age",
  },
  "CARD-CACHE-002": { level: "SHOULD", sections: { "1.0": "8.6.1" }, title: "The card is sent with an ETag" },
  "CARD-CACHE-003": { level: "MAY", sections: { "1.0": "8.6.1" }, title: "The card is sent with Last-Modified" },
  "CARD-SIGN-003": {
    level: "MUST",
    sections: { "1.0": "8.4.2" },
    title: "The protected header of a signature has alg, kid and typ",
  },
  "CARD-EXT-001": {
    level: "MUST",
    sections: { "1.0": "3.1.11", "0.3": "7.10" },
    title: "The extended card is refused to callers who have not shown who they are",
  },
  "CARD-EXT-002": {
    level: "MUST",
    sections: { "1.0": "3.1.11" },
    title: "A declared extended card is given, or said not to be configured",
  },
  "CORE-CAP-003": {
    level: "MUST",
    sections: { "1.0": "3.3.4" },
    title: "An extended card that is not declared is an unsupported operation",
  },
  "VER-SERVER-001": {
    level: "MUST",
    sections: { "1.0": "3.6.2", "0.3": "11.1.2" },
    title: "A request in the interface's version is understood",
  },
  "VER-SERVER-002": {
    level: "MUST",
    sections: { "1.0": "3.6.2" },
    title: "A version that is not supported is refused as such",
  },
  "VER-SERVER-003": {
    level: "MUST",
    sections: { "1.0": "3.6.2" },
    title: "A request without a version is one in 0.3",
  },
  "VER-CLIENT-002": {
    level: "MUST",
    sections: { "1.0": "3.6" },
    title: "The patch part of a version does not matter",
  },
  "SVC-PARAM-001": {
    level: "MUST",
    sections: { "1.0": "3.2.6" },
    title: "Names of service parameters have no case",
  },
  "SVC-PARAM-002": {
    level: "MUST",
    sections: { "1.0": "3.2.6" },
    title: "Extensions are a list with commas, and unknown ones are ignored",
  },
  "EXT-FALLBACK-001": {
    level: "MUST",
    sections: { "1.0": "4.6.3" },
    title: "An extension that is not supported is never replaced by another version",
  },
  "CORE-CAP-004": {
    level: "MUST",
    sections: { "1.0": "3.3.4" },
    title: "A required extension that was not asked for is an error",
  },
  "AUTH-SERVER-002": {
    level: "MUST",
    sections: { "1.0": "7.4", "0.3": "4.4" },
    title: "Operations are refused to callers without the credentials the card asks for",
  },
  "AUTH-SCOPE-002": {
    level: "MUST",
    sections: { "1.0": "13.1", "0.3": "4.6" },
    title: "Lists hold the tasks of their caller only",
  },
  "AUTH-SCOPE-003": {
    level: "MUST",
    sections: { "1.0": "3.3.2", "0.3": "4.6" },
    title: "Tasks and push configs of another caller are as unknown ones",
  },
  "TENANT-001": {
    level: "MUST",
    sections: { "1.0": "4.4.6" },
    title: "A task is not visible under another tenant",
  },
  "AUTH-INTASK-001": {
    level: "MUST",
    sections: { "1.0": "7.6.1", "0.3": "4.5" },
    title: "A demand for authentication is a task in that state, with a message that explains it",
  },
  "AUTH-INTASK-005": {
    level: "SHOULD",
    sections: { "1.0": "7.6.1" },
    title: "Streams stay open while authentication is required",
  },
} as const satisfies RequirementRows;
