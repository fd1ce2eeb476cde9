import { type Fields, parseFields } from "../json.ts";
import { Misread } from "../task/misread.ts";
import { type AgentResponse, readResponse } from "../task/read-response.ts";
import type { Report } from "../violations.ts";

/** An `agent_response` whose outside is as it should be. */
export interface Envelope {
  readonly sessionId: string;
  readonly taskId: string;
  readonly response: AgentResponse;
  /** Bytes of `msgDetail`, about. */
  readonly size: number;
}

/** Undefined if the platform would not take it; why not has been reported. */
export function readEnvelope({ msgDetail, sessionId, taskId }: Fields, report: Report): Envelope | undefined {
  const known = typeof taskId === "string" ? taskId : undefined;
  if (typeof msgDetail !== "string") {
    report("detail-not-a-string", `It was ${msgDetail === undefined ? "missing" : "JSON"}.`, known);
    return undefined;
  }
  try {
    if (known === undefined || typeof sessionId !== "string")
      throw new Misread("The envelope lacks sessionId or taskId.");
    const detail = parseFields(msgDetail);
    if (detail === undefined) throw new Misread("msgDetail holds no JSON object.");
    return { sessionId, taskId: known, response: readResponse(detail), size: msgDetail.length };
  } catch (error) {
    if (!(error instanceof Misread)) throw error;
    report("bad-response", error.message, known);
    return undefined;
  }
}
