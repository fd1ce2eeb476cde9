/** How a row of the table asks, and what is noted of the answer. */

/** Whose task a request is about. */
export interface Target {
  readonly taskId: string;
  readonly configId: string;
  readonly contextId: string;
}

export interface Answer {
  /** For the table. */
  readonly brief: string;
  /** Everything that was said. */
  readonly text: string;
}

type Ask = (target: Target, token: string | undefined) => Promise<Answer>;

export interface Row {
  readonly binding: string;
  readonly operation: string;
  readonly ask: Ask;
  /** What the request is about: an owner's task, or the caller alone, whoever that is. */
  readonly about: "task" | "caller";
  /** Where it is not what an answer without error is in this binding. */
  readonly right?: string;
  /** Where a task of that id cannot be told from none, see the README of this folder. */
  readonly taken?: string;
}

let messages = 0;

/** An id for a message that nobody has used. */
export function nextMessage(): string {
  return `message-${++messages}`;
}

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/** Asks over HTTP; of a stream, the first bytes are the answer. */
export async function askHttp(
  base: string,
  { method, path, headers, body }: HttpRequest,
  token: string | undefined,
): Promise<Answer> {
  const leaving = new AbortController();
  const response = await fetch(`${base}${path}`, {
    method,
    headers: {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    signal: leaving.signal,
  });
  const challenge = response.headers.has("www-authenticate") ? " +challenge" : "";
  if (response.headers.get("content-type") === "text/event-stream") {
    const first = await response.body?.getReader().read();
    leaving.abort();
    return { brief: `${response.status} stream`, text: new TextDecoder().decode(first?.value) };
  }
  const text = await response.text();
  const code = errorCode(text, response.status);
  return { brief: `${response.status}${code === undefined ? "" : ` ${code}`}${challenge}`, text };
}

interface ErrorDocument {
  readonly error?: { readonly code?: unknown; readonly status?: unknown };
  readonly code?: unknown;
}

/** Where the code only repeats the status, its name. */
function errorCode(text: string, status: number): string | undefined {
  if (text === "") return undefined;
  const { error, code = error?.code } = JSON.parse(text) as ErrorDocument;
  if (code === undefined) return undefined;
  return String(code === status ? error?.status : code);
}
