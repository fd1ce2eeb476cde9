import fc from "fast-check";
import { expect, it } from "vitest";
import { ProtocolError } from "../../model/errors.ts";
import { cases } from "../../model/testing/exploring.ts";
import type { ExchangeRequest } from "../../wire/exchange.ts";
import { isStreamReply } from "../../wire/exchange.ts";
import type { JsonRpcParams } from "../../wire/json-rpc.ts";
import { type Link, LinkError } from "../../wire/link.ts";
import { createLinkPair } from "../../wire/testing/link-pair.ts";
import type { AgentService, Calling, Dialect, ExchangeCalling, LinkCalling, RpcCalling } from "../contract.ts";
import { contextOf, createScriptedService, linkToolsOf, serveLink } from "./join.ts";
import { OPERATIONS } from "./values.ts";

const jsonText = fc.json({ maxDepth: 3 });
/** Empty, nearly valid and arbitrary bodies. */
const garbage = fc.oneof(
  fc.string(),
  jsonText,
  fc
    .dictionary(
      fc.constantFrom(
        "jsonrpc",
        "id",
        "result",
        "error",
        "task",
        "message",
        "code",
        "data",
        "statusUpdate",
        "params",
        "method",
      ),
      fc.oneof(fc.jsonValue({ maxDepth: 3 }), fc.constantFrom("2.0", 1, -32001, "TASK_STATE_WORKING", "SendMessage")),
      { maxKeys: 4 },
    )
    .map((value) => JSON.stringify(value)),
);

/** Whatever is received, only a ProtocolError is thrown, and the next request is answered. */
export function describeGarbage(dialect: Dialect, calling: Calling, serviceFor: ServiceFor): void {
  if (calling.carrier === "link") describeLinkGarbage(dialect, calling, serviceFor);
  else if (calling.carrier === "rpc") describeRpcGarbage(dialect, calling);
  else describeExchangeGarbage(dialect, calling);
}

function describeExchangeGarbage(dialect: Dialect, calling: ExchangeCalling): void {
  const kinds = (["send", "get", "list", "cancel", "push-create", "push-list", "extended-card"] as const).filter(
    (kind) => dialect.can.operations[kind],
  );

  it("an answer that cannot be read is a ProtocolError", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), fc.integer({ min: 100, max: 599 }), garbage, (kind, status, text) => {
        throwsOnlyProtocolErrors(() => calling.decode(kind, { status, contentType: "application/json", text }));
      }),
      { numRuns: cases(10_000) },
    );
  });

  it("a frame that cannot be read is a ProtocolError", () => {
    const id = fc.option(fc.string(), { nil: undefined });
    fc.assert(
      fc.property(garbage, fc.string(), id, (data, event, number) => {
        throwsOnlyProtocolErrors(() => calling.decodeFrame({ data, event, id: number }));
      }),
      { numRuns: cases(10_000) },
    );
  });

  it("a request that cannot be read is answered", async () => {
    const { http, jsonRpc } = dialect.serving;
    const service = createScriptedService();
    service.answer = () => {
      throw new ProtocolError("TASK_NOT_FOUND", "Task not found.");
    };
    const methods = [...(jsonRpc?.methods ?? ["none"])];
    await fc.assert(
      fc.asyncProperty(
        garbage,
        fc.string(),
        fc.constantFrom("GET", "POST", "DELETE", "PUT"),
        fc.constantFrom(...methods),
        async (body, path, method, name) => {
          const exchange = requestOf(method, `/${path}`, body);
          const replies = [
            ...(await Promise.all(
              (http ?? []).map((binding) =>
                binding.handle(exchange, contextOf(service), (check) => ({ ...check(exchange.body), exchange })),
              ),
            )),
            await jsonRpc?.handle(
              { id: 1, method: name, params: parsed(body), notification: false },
              exchange,
              contextOf(service),
            ),
          ];
          for (const reply of replies) {
            if (reply === undefined) continue;
            expect(isStreamReply(reply)).toBe(false);
            expect(reply.status).toBeGreaterThanOrEqual(200);
          }
        },
      ),
      { numRuns: cases(3_000) },
    );
  });
}

/** Empty, nearly valid and arbitrary bytes. */
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 64 }),
  fc
    .array(fc.tuple(fc.integer({ min: 1, max: 8 }), fc.uint8Array({ maxLength: 12 })), { maxLength: 6 })
    .map((fields) => Uint8Array.from(fields.flatMap(([number, value]) => [(number << 3) | 2, value.length, ...value]))),
);

function describeRpcGarbage(dialect: Dialect, calling: RpcCalling): void {
  const kinds = (["send", "get", "list", "cancel", "push-create", "push-list", "extended-card"] as const).filter(
    (kind) => dialect.can.operations[kind],
  );

  it("an answer, a frame or a status that cannot be read is a ProtocolError", () => {
    fc.assert(
      fc.property(fc.constantFrom(...kinds), bytes, fc.integer(), fc.string(), (kind, message, code, text) => {
        throwsOnlyProtocolErrors(() => calling.decode(kind, message));
        throwsOnlyProtocolErrors(() => calling.decodeFrame(message));
        expect(ProtocolError.is(calling.decodeFailure({ code, message: text, details: message }))).toBe(true);
      }),
      { numRuns: cases(10_000) },
    );
  });

  it("a request that cannot be read is answered", async () => {
    const service = createScriptedService();
    service.answer = () => {
      throw new ProtocolError("TASK_NOT_FOUND", "Task not found.");
    };
    const { rpc } = dialect.serving;
    const methods = Object.keys(rpc?.methods ?? {});
    await fc.assert(
      fc.asyncProperty(bytes, fc.constantFrom("Nothing", ...methods), async (message, method) => {
        const request = { service: rpc?.service ?? "", method, metadata: {}, message, remoteAddress: undefined };
        const reply = await rpc?.handle(request, contextOf(service));
        if (reply?.kind === "failure") expect(reply.status.code).toBeGreaterThan(0);
      }),
      { numRuns: cases(10_000) },
    );
  });
}

/** The peer that a dialect calls, with responses set by the suite. */
type ServiceFor = (scripted: AgentService) => AgentService;

function describeLinkGarbage(dialect: Dialect, calling: LinkCalling, serviceFor: ServiceFor): void {
  it("messages that cannot be read do not end the service", async () => {
    const service = createScriptedService();
    service.answer = () => ({ message: { messageId: "a", role: "ROLE_AGENT", parts: [{ text: "fine" }] } });
    await fc.assert(
      fc.asyncProperty(fc.array(garbage, { maxLength: 5 }), async (texts) => {
        const [near, far] = createLinkPair();
        const served = serveLink(dialect, contextOf(serviceFor(service)), far);
        for (const text of texts) await near.send(text);
        const caller = calling.open(linkToolsOf());
        void caller.attach(near);
        const answer = await caller.dispatch(OPERATIONS.send, {});
        expect("task" in answer ? answer.task.status : answer).toMatchObject({
          message: { parts: [{ text: "fine" }] },
        });
        near.close();
        await served;
      }),
    );
  });

  it("answers that cannot be read are ProtocolErrors or ignored, and the end of the link ends every question", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(garbage, { maxLength: 5 }), async (texts) => {
        const [near, far] = createLinkPair();
        const caller = calling.open(linkToolsOf());
        void caller.attach(near);
        const asked = caller.dispatch(OPERATIONS.send, {}).then(
          () => undefined,
          (error: unknown) => error,
        );
        for (const text of texts) await sendWhileOpen(far, text);
        await new Promise((resolve) => setImmediate(resolve));
        far.close();
        const error = await asked;
        expect(error === undefined || ProtocolError.is(error)).toBe(true);
        await expect(caller.dispatch(OPERATIONS.send, {})).rejects.toSatisfy(ProtocolError.is);
      }),
    );
  });

  it("a question whose asker gave up is over at once", async () => {
    const [near] = createLinkPair();
    const abort = new AbortController();
    const caller = calling.open(linkToolsOf());
    void caller.attach(near);
    const asked = caller.dispatch(OPERATIONS.send, { signal: abort.signal });
    abort.abort();
    await expect(asked).rejects.toSatisfy(ProtocolError.is);
    near.close();
  });
}

/** A caller may close a link that delivers only invalid frames. */
async function sendWhileOpen(link: Link, text: string): Promise<void> {
  try {
    await link.send(text);
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
  }
}

function throwsOnlyProtocolErrors(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if (!ProtocolError.is(error)) throw error;
  }
}

function requestOf(method: string, path: string, body: string): ExchangeRequest {
  return {
    method,
    path,
    query: "",
    headers: { "a2a-version": "1.0", "content-type": "application/json" },
    body: Buffer.from(body),
    remoteAddress: undefined,
  };
}

function parsed(text: string): JsonRpcParams | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as JsonRpcParams) : undefined;
  } catch {
    return undefined;
  }
}
