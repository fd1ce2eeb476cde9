/** What `initialize` answers with. */
export const VERSION = "1.0";
export const DIALECT_NAME = "xiaoyi-http";
/** Its name in lists of interfaces; no other document has one for it. */
export const BINDING = "urn:dragoman:binding:xiaoyi-http";
export const MESSAGE_PATH = "agent/message";
export const TOKEN_PATH = "agent/token";
export const SESSION_HEADER = "agent-session-id";
