/** This dialect never named one. */
export const VERSION = "1";
export const DIALECT_NAME = "tasks-rest";
/** Its name in lists of interfaces; no other document has one for it. */
export const BINDING = "urn:dragoman:binding:tasks-rest";
