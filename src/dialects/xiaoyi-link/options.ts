/** What an agent on the link is made of. */
import type { Clock, Log } from "../../model/ports.ts";
import type { ServeContext } from "../contract.ts";
import type { FileIntake } from "../xiaoyi/file-intake.ts";
import type { Notes } from "../xiaoyi/notes.ts";
import type { Notices } from "../xiaoyi/notices.ts";
import type { Language } from "../xiaoyi/phone-texts.ts";
import type { RenderMode } from "../xiaoyi/render.ts";
import type { UploadFile } from "../xiaoyi/uploads.ts";
import type { LinkTimes } from "./times.ts";

export interface LinkAgentOptions {
  readonly agentId: string;
  readonly context: Pick<ServeContext, "caller" | "ids" | "limits" | "report" | "service">;
  readonly artifactId: () => string;
  readonly clock: Clock;
  readonly log: Log;
  readonly mode: RenderMode;
  /** Of what the server itself says. */
  readonly language: Language;
  readonly times?: Partial<LinkTimes>;
  /** Absent: files are told by their names and links. */
  readonly upload?: UploadFile;
  /** Absent: users who left are told of nothing. */
  readonly notices?: Notices | undefined;
  /** Absent: files stay where the platform has them. */
  readonly intake?: FileIntake | undefined;
  /** Absent: that a conversation was cleared is forgotten when the process ends. */
  readonly cleared?: Notes | undefined;
  /** Tasks with the conversation that waits for their answer. Absent: a crash leaves those without that had just ended. */
  readonly unanswered?: Notes | undefined;
}
