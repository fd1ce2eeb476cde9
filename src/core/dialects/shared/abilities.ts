import type { OperationKind } from "../../model/operation.ts";
import type { Abilities } from "../contract.ts";

/** Everything that 1.0 can express, except for these operations. */
export function abilitiesWithout(...missing: readonly OperationKind[]): Abilities {
  const operations: Record<OperationKind, boolean> = {
    send: true,
    stream: true,
    get: true,
    list: true,
    cancel: true,
    subscribe: true,
    "push-create": true,
    "push-get": true,
    "push-list": true,
    "push-delete": true,
    "extended-card": true,
  };
  for (const kind of missing) operations[kind] = false;
  return {
    streaming: true,
    replay: true,
    operations,
    returnImmediately: true,
    chosenIds: false,
    parts: { text: true, raw: true, url: true, data: true },
    artifacts: true,
    inputRequired: true,
    metadata: true,
  };
}
