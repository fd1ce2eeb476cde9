/** One request as a person would type it, and what of the answer must be so. */
export interface RawCall {
  readonly title: string;
  /** `POST /path`, below the agent. */
  readonly line: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as it stands. */
  readonly body?: string;
  readonly status: number;
  readonly type: "application/json" | "application/a2a+json" | "text/event-stream" | "none";
  /** Every event of a stream, or the one body, must contain what stands at its place here. */
  readonly answer: readonly unknown[];
}

export const json = (line: string): Pick<RawCall, "line" | "headers"> => ({
  line,
  headers: { "content-type": "application/json" },
});
