/** What comes over the wire, as a stranger to this code base would write it down. */
export type Headers = Readonly<Record<string, string>>;

export interface WirePart {
  readonly text?: string;
  readonly raw?: string;
  readonly url?: string;
  readonly data?: unknown;
  readonly filename?: string;
  readonly mediaType?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface WireMessage {
  readonly messageId: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly role: string;
  readonly parts: readonly WirePart[];
}

interface WireStatus {
  readonly state: string;
  readonly timestamp: string;
  readonly message?: WireMessage;
}

interface WireArtifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly parts: readonly WirePart[];
}

export interface WireTask {
  readonly id: string;
  readonly contextId: string;
  readonly status: WireStatus;
  readonly artifacts?: readonly WireArtifact[];
  readonly history?: readonly WireMessage[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface WirePage {
  readonly tasks: readonly WireTask[];
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

export interface WireEvent {
  readonly task?: WireTask;
  readonly message?: WireMessage;
  readonly statusUpdate?: { readonly taskId: string; readonly contextId: string; readonly status: WireStatus };
  readonly artifactUpdate?: {
    readonly taskId: string;
    readonly contextId: string;
    readonly artifact: WireArtifact;
    readonly append?: boolean;
    readonly lastChunk?: boolean;
  };
}

export interface WireError {
  /** From the ErrorInfo, which is the same on every binding. */
  readonly reason: string;
  /** The JSON-RPC code, the code in the body of an HTTP error, or the status of gRPC. */
  readonly code: number;
  readonly message: string;
  readonly details: readonly WireDetail[];
}

export interface WireDetail {
  readonly "@type": string;
  readonly reason?: string;
  readonly domain?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly fieldViolations?: readonly { readonly field: string; readonly description: string }[];
}

/** All text of an artifact, its chunks put together. */
export function textOf(parts: readonly WirePart[]): string {
  return parts.map(({ text }) => text ?? "").join("");
}
