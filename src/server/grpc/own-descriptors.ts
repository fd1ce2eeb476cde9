/** Descriptors of the services that the endpoint adds to those of the dialects. */
import type { FileDescriptorProto } from "@bufbuild/protobuf/wkt";
import { toDescriptor } from "../../dialects/shared/proto/descriptor.ts";
import { HEALTH_TABLES } from "./health.ts";
import { readDescriptor } from "./reflection-files.ts";
import { REFLECTION_TABLES } from "./reflection-messages.ts";

export function ownDescriptors(): readonly FileDescriptorProto[] {
  return [healthDescriptor(), reflectionDescriptor("v1"), reflectionDescriptor("v1alpha")];
}

function healthDescriptor(): FileDescriptorProto {
  const types = { request: "HealthCheckRequest", response: "HealthCheckResponse" };
  const bytes = toDescriptor({
    path: "grpc/health/v1/health.proto",
    package: "grpc.health.v1",
    tables: HEALTH_TABLES,
    oneofs: {},
    service: {
      name: "Health",
      methods: [
        { name: "Check", ...types, streams: false },
        { name: "Watch", ...types, streams: true },
      ],
    },
  });
  const file = readDescriptor(bytes);
  // The tables have no enums within messages.
  const response = file.messageType.find(({ name }) => name === types.response);
  response?.enumType.push(...file.enumType.splice(0));
  for (const field of response?.field ?? []) field.typeName = `.grpc.health.v1.${types.response}.ServingStatus`;
  return file;
}

function reflectionDescriptor(version: "v1" | "v1alpha"): FileDescriptorProto {
  const bytes = toDescriptor({
    path: `grpc/reflection/${version}/reflection.proto`,
    package: `grpc.reflection.${version}`,
    tables: REFLECTION_TABLES,
    oneofs: { ServerReflectionRequest: "message_request", ServerReflectionResponse: "message_response" },
    service: {
      name: "ServerReflection",
      methods: [
        {
          name: "ServerReflectionInfo",
          request: "ServerReflectionRequest",
          response: "ServerReflectionResponse",
          streams: true,
        },
      ],
    },
  });
  const file = readDescriptor(bytes);
  for (const service of file.service) for (const method of service.method) method.clientStreaming = true;
  return file;
}
