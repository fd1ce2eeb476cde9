/** Stored with every task that is created over it, so it must never change. */
export const DIALECT_NAME = "xiaoyi-link";
