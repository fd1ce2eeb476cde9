import { expect, it } from "vitest";
import { syncsIn } from "./durability.ts";

it("adds up the calls in the table of strace", () => {
  const table = `strace: Process 12 attached with 11 threads
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 90.00    0.000179           7        25           fdatasync
 10.00    0.000020          10         4         1 fsync
------ ----------- ----------- --------- --------- ----------------
100.00    0.000199           7        29         1 total
`;
  expect(syncsIn(table)).toBe(29);
  expect(syncsIn("strace: Process 12 attached\n")).toBe(0);
});
