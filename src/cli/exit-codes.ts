/** What the process says when it ends. The first six are fixed by the a2a-cli specification, section 11.6. */
export const EXIT = {
  done: 0,
  failure: 1,
  usage: 2,
  unreachable: 3,
  authentication: 4,
  timeout: 5,
  /** Of a server whose watchdog ended it; `STALLED_EXIT_CODE` there. */
  stalled: 70,
  /** 128 + SIGINT, as shells expect. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command that has already said everything with a code other than 0. */
export class Ended extends Error {
  readonly exit: ExitCode;

  constructor(exit: ExitCode) {
    super(`Ended with ${exit}.`);
    this.name = "Ended";
    this.exit = exit;
  }
}
