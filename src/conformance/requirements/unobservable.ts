import type { RequirementRows } from "./index.ts";

const CLIENT = "a rule for clients";
const KEY = "needs the signer's key and the card before it was signed";

/** Obligations that no one can see from outside a server. */
export const UNOBSERVABLE_REQUIREMENTS = {
  "CLIENT-IFACE-001": {
    level: "MUST",
    sections: { "1.0": "8.3.2", "0.3": "5.6.3" },
    title: "The first supported interface is called, at its URL",
    unobservable: CLIENT,
  },
  "CLIENT-TENANT-001": {
    level: "MUST",
    sections: { "1.0": "4.4.6" },
    title: "The tenant of the interface is sent, and none otherwise",
    unobservable: CLIENT,
  },
  "VER-CLIENT-001": {
    level: "MUST",
    sections: { "1.0": "3.6" },
    title: "Every request carries A2A-Version",
    unobservable: CLIENT,
  },
  "CARD-SIGN-002": {
    level: "MUST",
    sections: { "1.0": "8.4.1" },
    title: "The signatures themselves are not signed",
    unobservable: KEY,
  },
  "CARD-SIGN-001": {
    level: "MUST",
    sections: { "1.0": "8.4.1" },
    title: "The payload is in the canonical form of RFC 8785",
    unobservable: KEY,
  },
  "CARD-SIGN-005": {
    level: "MUST",
    sections: { "1.0": "8.4.1" },
    title: "Optional members set to their default are in the payload",
    unobservable: KEY,
  },
  "CARD-SIGN-006": {
    level: "MUST",
    sections: { "1.0": "8.4.1" },
    title: "Other members at their default are not in the payload",
    unobservable: KEY,
  },
  "CARD-SIGN-004": {
    level: "MUST",
    sections: { "1.0": "8.4.3" },
    title: "Any change makes verification fail",
    unobservable: CLIENT,
  },
  "CLIENT-STREAM-001": {
    level: "MUST",
    sections: { "1.0": "5.3", "0.3": "3.3" },
    title: "The reader of streams copes with all legal framing",
    unobservable: CLIENT,
  },
  "PUSH-RECEIVER-001": {
    level: "MUST",
    sections: { "1.0": "13.2", "0.3": "10.2" },
    title: "Receivers of webhooks verify what they get",
    unobservable: "a rule for receivers of webhooks",
  },
  "SEC-LOG-001": {
    level: "MUST",
    sections: { "1.0": "13" },
    title: "Logs hold no credentials",
    unobservable: "logs are not shown to callers",
  },
} as const satisfies RequirementRows;
