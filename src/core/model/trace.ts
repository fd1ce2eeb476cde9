/** Trace context of a request, as the W3C recommendation spells it in headers. It is passed on, never changed. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** `version-traceId-parentId-flags`; version `ff` and ids of only zeros are invalid. Later versions may append fields. */
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16}-[\da-f]{2}(?:-[\w.-]{1,256})?$/;
/** The recommendation requires 512 characters to be passed on. */
const MAX_STATE_LENGTH = 512;
const PRINTABLE = /^[ -~]+$/;

/** Undefined if there is none or it is invalid. Names of headers are lower-case. */
export function readTrace(headers: Readonly<Record<string, string | undefined>>): TraceContext | undefined {
  const { traceparent, tracestate } = headers;
  if (traceparent === undefined || !TRACEPARENT.test(traceparent)) return undefined;
  const isPassedOn = tracestate !== undefined && tracestate.length <= MAX_STATE_LENGTH && PRINTABLE.test(tracestate);
  return isPassedOn ? { traceparent, tracestate } : { traceparent };
}
