/** Path templates with parameters in braces, and the methods that each supports. */
import { invalidParams } from "../../../model/errors.ts";
import type { OperationKind } from "../../../model/operation.ts";

export type Method = "GET" | "POST" | "DELETE";
export type Methods = Readonly<Partial<Record<Method, OperationKind>>>;
export type Route = readonly [path: string, methods: Methods];

export interface RouteMatch {
  readonly methods: Methods;
  /** Path parameters, decoded. */
  readonly named: Readonly<Record<string, string>>;
}

interface Pattern {
  readonly expression: RegExp;
  readonly names: readonly string[];
  readonly methods: Methods;
}

const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});

/**
 * The first matching route wins: a verb after a colon must precede the id that would otherwise match it. `target` is
 * still percent-encoded; its leading slash may be missing.
 */
export function compileRoutes(routes: readonly Route[]): (target: string) => RouteMatch | undefined {
  const patterns = routes.map(compile);
  const fixed = new Map<string, RouteMatch>(
    routes.filter(([path]) => !path.includes("{")).map(([path, methods]) => [path, { methods, named: NO_PARAMS }]),
  );
  return (target) => {
    const path = target.startsWith("/") ? target : `/${target}`;
    const place = fixed.get(path);
    if (place !== undefined) return place;
    for (const { expression, names, methods } of patterns) {
      const match = expression.exec(path);
      if (match !== null) return { methods, named: decodeParams(names, match) };
    }
    return undefined;
  };
}

function compile([path, methods]: Route): Pattern {
  const names = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string);
  // Some URL builders encode the colon before a verb.
  const source = path.replace(/^(.*\/message):/, "$1(?::|%3[aA])").replace(/\{\w+\}/g, "([^/]+)");
  return { expression: new RegExp(`^${source}/?$`), names, methods };
}

export function allowHeader(methods: Methods): string {
  return Object.keys(methods)
    .flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method]))
    .join(", ");
}

function decodeParams(names: readonly string[], match: RegExpExecArray): Readonly<Record<string, string>> {
  const named: Record<string, string> = {};
  names.forEach((name, at) => {
    named[name] = decodeSegment(name, match[at + 1] as string);
  });
  return named;
}

export function decodeSegment(name: string, segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw invalidParams(name, "is not properly percent-encoded in the path");
  }
}
