/** One request as a person would type it, and what of the answer must be so. */
export interface RawCall {
  readonly title: string;
  /** `POST /path`, below the agent. */
  readonly line: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Sent as it stands. */
  readonly body: string | undefined;
  readonly status: number;
  readonly type: "application/json" | "application/a2a+json" | "text/event-stream";
  /** Every event of a stream, or the one body, must contain what stands at its place here. */
  readonly answer: readonly unknown[];
}

type Details = Partial<Pick<RawCall, "headers" | "status" | "type">>;

/** Calls of one dialect. A list of answers is the events of a stream; the status is 200 unless the details differ. */
export function callsWith(dialectHeaders: Readonly<Record<string, string>>, httpType: RawCall["type"]) {
  const { "content-type": _, ...bodiless } = dialectHeaders;
  const http = (
    title: string,
    line: string,
    body: string | undefined,
    answer: object,
    details: Details = {},
  ): RawCall => ({
    title,
    line,
    headers: body === undefined ? bodiless : dialectHeaders,
    body,
    status: 200,
    ...(Array.isArray(answer) ? { type: "text/event-stream", answer } : { type: httpType, answer: [answer] }),
    ...details,
  });
  const rpc = (title: string, body: string, answer: object, details: Details = {}): RawCall =>
    http(title, "POST ", body, answer, Array.isArray(answer) ? details : { type: "application/json", ...details });
  return { http, rpc };
}

export const JSON_TYPE = { "content-type": "application/json" };
