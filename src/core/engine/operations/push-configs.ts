import { invalidParams, ProtocolError, pushConfigNotFound, taskNotFound } from "../../model/errors.ts";
import type {
  CallContext,
  Operation,
  PushConfigPage,
  SendInput,
  TaskPushNotificationConfig,
} from "../../model/operation.ts";
import { canParseUrl } from "../../model/url.ts";
import { type DeliveryQuery, type DeliveryRegistration, WEBHOOK_ROUTE } from "../../store/contract.ts";
import { KeyedMutex, type ServedAgent } from "../concurrency.ts";
import type { Deliveries } from "../deliveries/deliveries.ts";
import { toWebhook, toWebhookSecret } from "../deliveries/webhook-route.ts";
import type { EngineContext } from "../options.ts";
import { isSameScope, toScope } from "../request-identity.ts";
import type { Runner } from "../runs/runner.ts";
import { fromPushPageToken, toPushPageToken } from "./task-queries.ts";

type PushOperation<Kind extends Operation["kind"]> = Extract<Operation, { kind: Kind }>;

const DEFAULT_PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 100;
const MAX_URL_LENGTH = 2_048;
const MAX_SECRET_LENGTH = 4_096;
/** Where a config that comes with a message stands in its request. */
const INLINE_PATH = "configuration.taskPushNotificationConfig.";

/** The webhooks that callers register for their tasks, read back and delete. */
export class PushConfigs {
  readonly #context: EngineContext;
  readonly #runner: Runner;
  readonly #deliveries: Pick<Deliveries, "toRegistration">;
  /** By scope and task: a caller that adds a config has seen those that were added before, and does not wait for other callers. */
  readonly #turns = new KeyedMutex();

  constructor(context: EngineContext, runner: Runner, deliveries: Pick<Deliveries, "toRegistration">) {
    this.#context = context;
    this.#runner = runner;
    this.#deliveries = deliveries;
  }

  async create(
    served: ServedAgent,
    { taskId, config }: PushOperation<"push-create">,
    call: CallContext,
  ): Promise<TaskPushNotificationConfig> {
    const registered = this.#registration(config, call, "");
    const scope = toScope(served, call);
    return this.addWithinLimit(served, call, taskId, [registered], async () => {
      const write = { kind: "delivery-put" as const, ...scope, id: taskId, delivery: registered };
      const result = await this.#runner.committer.write(write);
      if (!result.ok) throw taskNotFound(taskId);
      return withoutSecrets(taskId, registered);
    });
  }

  async get(
    served: ServedAgent,
    { taskId, id }: PushOperation<"push-get">,
    call: CallContext,
  ): Promise<TaskPushNotificationConfig> {
    const { store } = this.#context;
    const scope = toScope(served, call);
    const found = await store.delivery(taskId, "webhooks", id);
    if (found !== undefined && isSameScope(found.scope, scope)) return withoutSecrets(taskId, found.delivery);
    // Which of the two is missing is shown to those only who may see the task.
    const page = await store.deliveries(taskId, { group: "webhooks", limit: 1 });
    throw page !== undefined && isSameScope(page.scope, scope) ? pushConfigNotFound(taskId, id) : taskNotFound(taskId);
  }

  async list(served: ServedAgent, operation: PushOperation<"push-list">, call: CallContext): Promise<PushConfigPage> {
    const { taskId, pageSize, pageToken } = operation;
    const scope = toScope(served, call);
    const after = pageToken === undefined ? undefined : fromPushPageToken(pageToken, scope, taskId);
    const limit = toLimit(pageSize);
    const query: DeliveryQuery = { group: "webhooks", limit, after };
    const page = await this.#context.store.deliveries(taskId, query);
    if (page === undefined || !isSameScope(page.scope, scope)) throw taskNotFound(taskId);
    return {
      configs: page.deliveries.map((delivery) => withoutSecrets(taskId, delivery)),
      nextPageToken: page.next === undefined ? "" : toPushPageToken(page.next, scope, taskId),
    };
  }

  async delete(
    served: ServedAgent,
    { taskId, id }: PushOperation<"push-delete">,
    call: CallContext,
  ): Promise<undefined> {
    const which = { group: "webhooks" as const, deliveryId: id };
    const write = { kind: "delivery-delete" as const, ...toScope(served, call), id: taskId, ...which };
    const result = await this.#runner.committer.write(write);
    if (!result.ok) throw taskNotFound(taskId);
    return undefined;
  }

  /** What is registered with a message or not at all: the caller's webhook and the carrier's reply. Undefined for most. */
  registrationsOf(input: SendInput, call: CallContext): readonly DeliveryRegistration[] | undefined {
    const webhook = this.#readInline(input, call);
    if (input.replyTo === undefined) return webhook && [webhook];
    const reply = this.#deliveries.toRegistration(input.replyTo, call.dialect);
    return webhook === undefined ? [reply] : [webhook, reply];
  }

  #readInline({ message, chosenId, configuration }: SendInput, call: CallContext): DeliveryRegistration | undefined {
    const config = configuration?.taskPushNotificationConfig;
    if (config === undefined) return undefined;
    const { taskId = "" } = config;
    if (taskId !== "" && taskId !== (message.taskId ?? chosenId)) {
      throw invalidParams(`${INLINE_PATH}taskId`, "not the task of the message");
    }
    return this.#registration(config, call, INLINE_PATH);
  }

  /** Does what registers deliveries for a task that exists, if it has room for the webhook among them. */
  addWithinLimit<T>(
    served: ServedAgent,
    call: CallContext,
    taskId: string,
    deliveries: readonly DeliveryRegistration[],
    add: () => Promise<T>,
  ): Promise<T> {
    const webhook = deliveries.find(({ route }) => route === WEBHOOK_ROUTE);
    if (webhook === undefined) return add();
    const scope = toScope(served, call);
    const key = JSON.stringify([scope.agent, scope.tenant, scope.owner, taskId]);
    return this.#turns.runExclusive(key, async () => {
      const { store, limits } = this.#context;
      const live = this.#runner.get(taskId);
      // A caller that chose the id of a task knows it before the store does.
      if (live?.fold.number === 0 && isSameScope(live, scope)) await live.whenFlushed();
      const page = await store.deliveries(taskId, { group: "webhooks", limit: limits.pushConfigs });
      if (page === undefined || !isSameScope(page.scope, scope)) throw taskNotFound(taskId);
      if (
        page.deliveries.length >= limits.pushConfigs &&
        (await store.delivery(taskId, "webhooks", webhook.id)) === undefined
      ) {
        throw new ProtocolError("RESOURCE_EXHAUSTED", "The task has too many push notification configs.", {
          metadata: { taskId, limit: String(limits.pushConfigs) },
        });
      }
      return add();
    });
  }

  /** `path` stands before the names of members in what is said of them. */
  #registration(config: TaskPushNotificationConfig, call: CallContext, path: string): DeliveryRegistration {
    const { id = "", url, token, authentication } = config;
    const longest = this.#context.limits.id;
    checkUrl(`${path}url`, url);
    if (this.#context.pushSender?.refuses(url) === true) {
      throw invalidParams(`${path}url`, "not an address that is called from here");
    }
    checkLength(`${path}id`, id, longest);
    checkLength(`${path}token`, token, MAX_SECRET_LENGTH);
    checkLength(`${path}authentication.scheme`, authentication?.scheme, longest);
    checkLength(`${path}authentication.credentials`, authentication?.credentials, MAX_SECRET_LENGTH);
    checkHeader(`${path}token`, token);
    checkHeader(`${path}authentication.scheme`, authentication?.scheme);
    checkHeader(`${path}authentication.credentials`, authentication?.credentials);
    return {
      id: id === "" ? this.#context.ids.pushConfig() : id,
      route: WEBHOOK_ROUTE,
      address: url,
      ...toWebhookSecret({ token, authentication }),
      dialect: call.dialect,
      wants: "events",
    };
  }
}

/** A config as its owner reads it back: without what the receiver is to know it by. */
function withoutSecrets(taskId: string, delivery: DeliveryRegistration): TaskPushNotificationConfig {
  const { id, url, authentication } = toWebhook(delivery);
  if (authentication === undefined) return { id, taskId, url };
  return { id, taskId, url, authentication: { scheme: authentication.scheme } };
}

function toLimit(pageSize: number | undefined): number {
  if (pageSize === undefined || pageSize === 0) return DEFAULT_PAGE_SIZE;
  if (!Number.isSafeInteger(pageSize) || pageSize < 0) throw invalidParams("pageSize", "not a number of configs");
  return Math.min(pageSize, MAX_PAGE_SIZE);
}

/** Its form alone: whether the address may be called is known only when it is. */
function checkUrl(field: string, url: string): void {
  checkLength(field, url, MAX_URL_LENGTH);
  // The parser forgives blanks and missing slashes; a receiver that was registered by mistake would never say so.
  if (!/^https?:\/\/[^\s\\]+$/i.test(url) || !canParseUrl(url)) throw invalidParams(field, "not an http or https URL");
  const { username, password } = new URL(url);
  if (username !== "" || password !== "") {
    throw invalidParams(field, "contains credentials; give them in authentication, which is never read back");
  }
}

function checkLength(field: string, value: string | undefined, longest: number): void {
  if (value !== undefined && value.length > longest) throw invalidParams(field, `longer than ${longest} characters`);
}

/** It will travel in a header, where anything else could not be sent, or would be read as another header. */
function checkHeader(field: string, value: string | undefined): void {
  if (value !== undefined && !/^[\x20-\x7e]*$/.test(value)) throw invalidParams(field, "must be printable ASCII");
}
