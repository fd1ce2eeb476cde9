/** Ends of names of files beside the database, by which a test and the server it kills understand each other. */

/** How it is connected to the platform. */
export const XIAOYI = ".connected.json";
/** Its agent may answer. */
export const GO = ".go";
