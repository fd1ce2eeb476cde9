import { status as STATUS } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { clientOf, closeAfterEach, openClient, openEndpoint, type RawClient, statusOf } from "../testing/clients.ts";
import { SERVICE } from "../testing/fake-serving.ts";
import { HEALTH_SERVICE } from "./health.ts";

closeAfterEach();

const CHECK = `/${HEALTH_SERVICE}/Check`;
const WATCH = `/${HEALTH_SERVICE}/Watch`;
const SERVING = Buffer.from([8, 1]);
const NOT_SERVING = Buffer.from([8, 2]);
const SERVICE_UNKNOWN = Buffer.from([8, 3]);

const request = (service: string) => Buffer.from([10, service.length, ...Buffer.from(service)]);

function watch(client: RawClient, service: string) {
  const call = client.stream(WATCH, request(service));
  const status = statusOf(call);
  const messages = call[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  return { call, status, next: async () => (await messages.next()).value as Buffer };
}

describe("the health service", () => {
  it("says that the server and its services serve", async () => {
    const client = await openClient();
    expect((await client.unary(CHECK, "")).message).toEqual(SERVING);
    expect((await client.unary(CHECK, request(SERVICE))).message).toEqual(SERVING);
    expect((await client.unary(CHECK, request(HEALTH_SERVICE))).message).toEqual(SERVING);
  });

  it("knows no others", async () => {
    const client = await openClient();
    await expect(client.unary(CHECK, request("x.Y"))).rejects.toMatchObject({
      code: STATUS.NOT_FOUND,
      details: 'There is no service "x.Y" here.',
    });
    const unknown = watch(client, "x.Y");
    expect(await unknown.next()).toEqual(SERVICE_UNKNOWN);
    unknown.call.cancel();
    await unknown.status;
  });

  it("refuses what is no request", async () => {
    const client = await openClient();
    await expect(client.unary(CHECK, Buffer.from([10, 200]))).rejects.toMatchObject({ code: STATUS.INVALID_ARGUMENT });
  });

  it("tells those who watch when the server drains, and ends them when it closes", async () => {
    const endpoint = await openEndpoint();
    const client = clientOf(endpoint);
    const [whole, one, unknown] = [watch(client, ""), watch(client, SERVICE), watch(client, "x.Y")];
    expect(await whole.next()).toEqual(SERVING);
    expect(await one.next()).toEqual(SERVING);
    expect(await unknown.next()).toEqual(SERVICE_UNKNOWN);
    endpoint.drain();
    endpoint.drain();
    expect(await whole.next()).toEqual(NOT_SERVING);
    expect(await one.next()).toEqual(NOT_SERVING);
    expect((await client.unary(CHECK, "")).message).toEqual(NOT_SERVING);
    expect((await client.say("still here")).message.toString()).toBe("still here");
    const closed = endpoint.close(30_000);
    for (const { status } of [whole, one, unknown]) {
      expect(await status).toMatchObject({ code: STATUS.UNAVAILABLE, details: "The server is closing." });
    }
    await closed;
  });

  it("tells those who watch that it stops, also if it closes at once", async () => {
    const endpoint = await openEndpoint();
    const whole = watch(clientOf(endpoint), "");
    expect(await whole.next()).toEqual(SERVING);
    const closed = endpoint.close(30_000);
    expect(await whole.next()).toEqual(NOT_SERVING);
    expect((await whole.status).code).toBe(STATUS.UNAVAILABLE);
    await closed;
  });
});
