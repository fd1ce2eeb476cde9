import "./features.ts";
import { trackHops } from "./core/client/run-hops.ts";

export type { CredentialProvider, Refusal } from "./core/auth/login/contract.ts";
export type { PublicJwk } from "./core/auth/signatures/keys.ts";
export type { CardVerification } from "./core/auth/signatures/verify-card.ts";
export type { FetchedCard } from "./core/client/card/fetch-card.ts";
export { fetchCard } from "./core/client/card/fetch-card.ts";
export { connect } from "./core/client/connect.ts";
export { ConnectionError, type ConnectionErrorCode } from "./core/client/errors.ts";
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
} from "./core/client/options.ts";
export { bytesOf, type Content, data, file, text, textOf } from "./core/client/parts.ts";
export type { RegistryReference } from "./core/client/reference.ts";
export type { AgentCard } from "./core/model/card.ts";
export { type ErrorCode, ProtocolError } from "./core/model/errors.ts";
export type { StreamEvent } from "./core/model/event.ts";
export type { Loss } from "./core/model/loss.ts";
export type { Message, Part } from "./core/model/message.ts";
export type {
  ListInput,
  PushConfigPage,
  SendConfiguration,
  SendOutcome,
  TaskPage,
  TaskPushNotificationConfig,
} from "./core/model/operation.ts";
export type { Task, TaskState } from "./core/model/task.ts";
export { createRegistryClient } from "./features/registry/client/registry-client.ts";
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
} from "./features/registry/client/types.ts";

// Importing the client means that this process calls agents, so runs that start from now on pass their hops to calls.
trackHops();
