import { readFile } from "node:fs/promises";
import { create, createFileRegistry, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { status as STATUS } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { descriptorFiles } from "../../../../../scripts/generate-descriptors.ts";
import { compileProtobuf } from "../../../dialects/shared/proto/binary-codec.ts";
import { clientOf, closeAfterEach, openClient, openEndpoint, type RawClient, statusOf } from "../testing/clients.ts";
import { fakeServing, recording } from "../testing/fake-serving.ts";
import { REFLECTION_TABLES, type ReflectionRequest } from "./reflection.ts";
import { REFLECTION_METHOD, REFLECTION_SERVICES } from "./reflection-calls.ts";

closeAfterEach();

const codec = compileProtobuf<"ServerReflectionRequest" | "ServerReflectionResponse">(REFLECTION_TABLES);

interface Answer {
  readonly validHost?: string;
  readonly originalRequest?: ReflectionRequest;
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly string[] };
  readonly allExtensionNumbersResponse?: object;
  readonly listServicesResponse?: object;
  readonly errorResponse?: object;
}

function talk(client: RawClient, service: string = REFLECTION_SERVICES[0]) {
  const call = client.bidi(`/${service}/${REFLECTION_METHOD}`);
  const status = statusOf(call);
  const answers = call[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const ask = async (request: ReflectionRequest): Promise<Answer> => {
    call.write(Buffer.from(codec.encode("ServerReflectionRequest", request)));
    return codec.decode("ServerReflectionResponse", (await answers.next()).value);
  };
  const files = async (request: ReflectionRequest): Promise<FileDescriptorProto[]> => {
    const { fileDescriptorResponse } = await ask(request);
    const found = fileDescriptorResponse?.fileDescriptorProto ?? [];
    return found.map((bytes) => fromBinary(FileDescriptorProtoSchema, Buffer.from(bytes, "base64")));
  };
  return { call, status, ask, files };
}

const names = (files: readonly FileDescriptorProto[]) => files.map(({ name }) => name);

describe.each(REFLECTION_SERVICES)("%s", (service) => {
  it("lists the services, its own and those about the server", async () => {
    const { ask, call, status } = talk(await openClient(), service);
    const answer = await ask({ host: "here", listServices: "" });
    expect(answer).toEqual({
      validHost: "here",
      originalRequest: { host: "here", listServices: "" },
      listServicesResponse: {
        service: [
          { name: "grpc.health.v1.Health" },
          { name: "grpc.reflection.v1.ServerReflection" },
          { name: "grpc.reflection.v1alpha.ServerReflection" },
          { name: "test.v1.Parrot" },
        ],
      },
    });
    call.end();
    expect((await status).code).toBe(STATUS.OK);
  });

  it("shows every service with all that it needs", async () => {
    const client = await openClient();
    for (const name of ["test.v1.Parrot", "grpc.health.v1.Health", ...REFLECTION_SERVICES]) {
      const one = talk(client, service);
      const file = await one.files({ fileContainingSymbol: name });
      const set = create(FileDescriptorSetSchema, { file: file.reverse() });
      const found = createFileRegistry(fromBinary(FileDescriptorSetSchema, toBinary(FileDescriptorSetSchema, set)));
      expect(found.getService(name)?.methods.length).toBeGreaterThan(0);
      one.call.end();
    }
  });
});

describe("reflection", () => {
  it.each(descriptorFiles())("shows the tables as they are: %s", async (path, content) => {
    expect(await readFile(new URL(`../../../../../${path}`, import.meta.url), "utf8")).toBe(content);
  });

  it("finds files by name, well-known ones too, each with what it imports that was not shown before", async () => {
    const { files, call } = talk(await openClient());
    const all = await files({ fileByFilename: "test/v1/parrot.proto" });
    expect(names(all).sort()).toEqual([
      "google/protobuf/any.proto",
      "google/protobuf/source_context.proto",
      "google/protobuf/type.proto",
      "test/v1/parrot.proto",
    ]);
    expect(names(await files({ fileByFilename: "google/protobuf/type.proto" }))).toEqual([
      "google/protobuf/type.proto",
    ]);
    for (const name of ["struct", "timestamp", "empty", "duration", "descriptor"]) {
      const file = `google/protobuf/${name}.proto`;
      expect(names(await files({ fileByFilename: file }))).toEqual([file]);
    }
    call.end();
  });

  it.each([
    ["test.v1.Parrot.Repeat", "test/v1/parrot.proto"],
    [".test.v1.Words", "test/v1/parrot.proto"],
    ["test.v1.Words.kind", "test/v1/parrot.proto"],
    ["test.v1.Words.Inner.Mood", "test/v1/parrot.proto"],
    ["test.v1.Words.Inner.MOOD_GOOD", "test/v1/parrot.proto"],
    ["google.protobuf.Struct", "google/protobuf/struct.proto"],
    ["google.protobuf.Value.kind", "google/protobuf/struct.proto"],
    ["google.protobuf.NULL_VALUE", "google/protobuf/struct.proto"],
    ["grpc.health.v1.HealthCheckResponse.ServingStatus", "grpc/health/v1/health.proto"],
  ])("finds the file that declares %s", async (symbol, file) => {
    const { files, call } = talk(await openClient());
    expect(names(await files({ fileContainingSymbol: symbol }))[0]).toBe(file);
    call.end();
  });

  it("leaves out imports that nobody could resolve", async () => {
    const { files, call } = talk(await openClient());
    const [parrot] = await files({ fileByFilename: "test/v1/parrot.proto" });
    expect(parrot?.dependency).toEqual(["google/protobuf/type.proto"]);
    call.end();
  });

  it("says what is not there, and goes on", async () => {
    const { ask, call, status } = talk(await openClient());
    const notFound = (errorMessage: string) => ({ errorCode: STATUS.NOT_FOUND, errorMessage });
    expect((await ask({ fileByFilename: "x.proto" })).errorResponse).toEqual(notFound('There is no file "x.proto".'));
    expect((await ask({ fileContainingSymbol: "x.Y" })).errorResponse).toEqual(
      notFound('Nothing here is called "x.Y".'),
    );
    expect((await ask({ allExtensionNumbersOfType: "x.Y" })).errorResponse).toEqual(
      notFound('There is no message "x.Y".'),
    );
    const extension = { containingType: "test.v1.Words", extensionNumber: 7 };
    expect((await ask({ fileContainingExtension: extension })).errorResponse).toEqual(
      notFound("There are no extensions here."),
    );
    expect((await ask({ allExtensionNumbersOfType: "test.v1.Words" })).allExtensionNumbersResponse).toEqual({
      baseTypeName: "test.v1.Words",
    });
    call.end();
    expect((await status).code).toBe(STATUS.OK);
  });

  it.each([
    ["asks for nothing", Buffer.alloc(0)],
    ["is none", Buffer.from([10, 200])],
  ])("refuses a request that %s", async (_, bytes) => {
    const { call, status } = talk(await openClient());
    call.resume();
    call.write(bytes);
    expect((await status).code).toBe(STATUS.INVALID_ARGUMENT);
  });

  it("fails alone where a descriptor is broken", async () => {
    const { log, lines } = recording();
    const broken = { ...fakeServing(), descriptors: async () => [Buffer.from([10, 200]).toString("base64")] };
    const client = await openClient({ log, services: [broken] });
    const { call, status } = talk(client);
    call.resume();
    call.write(Buffer.from([58, 0]));
    expect(await status).toMatchObject({ code: STATUS.INTERNAL, details: "Reflection failed." });
    expect(lines).toHaveLength(1);
    expect((await client.say("well")).message.toString()).toBe("well");
  });

  it("answers many questions to one who is slow to listen", async () => {
    const { call, status } = talk(await openClient());
    const question = Buffer.from(codec.encode("ServerReflectionRequest", { fileContainingSymbol: "test.v1.Parrot" }));
    for (let count = 0; count < 200; count++) call.write(question);
    call.end();
    let answers = 0;
    call.on("data", () => {
      answers++;
      call.pause();
      setImmediate(() => call.resume());
    });
    await new Promise((resolve) => call.on("end", resolve));
    expect((await status).code).toBe(STATUS.OK);
    expect(answers).toBe(200);
  });

  it("ends when the server closes", async () => {
    const endpoint = await openEndpoint();
    const { ask, call, status } = talk(clientOf(endpoint));
    await ask({ listServices: "" });
    call.resume();
    await endpoint.close(30_000);
    expect((await status).code).toBe(STATUS.UNAVAILABLE);
  });
});
