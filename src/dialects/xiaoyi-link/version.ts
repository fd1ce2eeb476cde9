/** Stands with every task that was made over it, so it never changes. */
export const DIALECT_NAME = "xiaoyi-link";
