import { trackHops } from "./run-hops.ts";

export type { CredentialProvider, Refusal } from "../auth/login/contract.ts";
export type { PublicJwk } from "../auth/signatures/keys.ts";
export type { CardVerification } from "../auth/signatures/verify-card.ts";
export type { AgentCard } from "../model/card.ts";
export { type ErrorCode, ProtocolError } from "../model/errors.ts";
export type { StreamEvent } from "../model/event.ts";
export type { Loss } from "../model/loss.ts";
export type { Message, Part } from "../model/message.ts";
export type {
  ListInput,
  PushConfigPage,
  SendConfiguration,
  SendOutcome,
  TaskPage,
  TaskPushNotificationConfig,
} from "../model/operation.ts";
export type { Task, TaskState } from "../model/task.ts";
export type { FetchedCard } from "./card/fetch-card.ts";
export { fetchCard } from "./card/fetch-card.ts";
export { connect } from "./connect.ts";
export { ConnectionError, type ConnectionErrorCode } from "./errors.ts";
export type {
  CallOptions,
  CardOptions,
  ChosenInterface,
  ClientEvent,
  ConnectOptions,
  ExchangeTrace,
  FileInput,
  Notice,
  PushListQuery,
  RemoteAgent,
  ReplyOptions,
  RetryOptions,
  SendContent,
  SendOptions,
  SendRequest,
  SignaturePolicy,
} from "./options.ts";
export { bytesOf, type Content, data, file, text, textOf } from "./parts.ts";
export type { RegistryReference } from "./registry/reference.ts";
export { createRegistryClient } from "./registry/registry-client.ts";
export {
  type RegistrationInput,
  type RegistryClient,
  type RegistryDetails,
  type RegistryEntry,
  RegistryError,
  type RegistryErrorCode,
  type RegistryEvent,
  type RegistryFilter,
  type RegistryListing,
  type RegistryOptions,
  type RegistryPage,
  type RegistryResult,
  type RegistrySearch,
  type RegistrySearchPage,
} from "./registry/types.ts";

// Importing the client means that this process calls agents, so runs that start from now on pass their hops to calls.
trackHops();
