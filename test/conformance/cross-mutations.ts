/** What is right in one binding and wrong in another. */
import { drop, get, set } from "./paths.ts";
import type { SeenRequest, Spoiler } from "./proxy.ts";

const isRest = ({ path }: SeenRequest): boolean => path.includes("/rest/");

export const CROSS_MUTATIONS: readonly { readonly check: string; readonly wrong: Spoiler }[] = [
  {
    check: "same-operations",
    wrong: {
      request: (request) =>
        isRest(request) && /\/tasks\?/.test(request.path)
          ? { status: 404, headers: { "content-type": "text/plain" }, body: "Not Found" }
          : undefined,
    },
  },
  {
    check: "same-tasks",
    wrong: {
      answer: ({ body }, request) => {
        if (isRest(request)) drop(body, "artifacts");
      },
    },
  },
  {
    check: "same-refusals",
    wrong: {
      answer: ({ body }, request) => {
        if (isRest(request) && get(body, "error.details.0.reason") === "TASK_NOT_CANCELABLE")
          set(body, "error.details.0.reason", "UNSUPPORTED_OPERATION");
      },
    },
  },
];
