/** Judging values by tables of their members. A table says what a version's binding writes; what it does not list is free. */
import { type Fields, isObject, show } from "./json.ts";
import type { RequirementId } from "./requirements.ts";

/** A member: its type, with `!` if it must be there; a list has `[]`, one that must not be empty `[+]`. */
export type Shape = Readonly<Record<string, string>>;

export interface ShapeTable {
  readonly shapes: Readonly<Record<string, Shape>>;
  /** Which requirement asks for the members of a shape. */
  readonly requirements: Readonly<Record<string, RequirementId>>;
  /** Of these members exactly one is there. */
  readonly oneOf: Readonly<Record<string, readonly string[]>>;
  /** Types that stand for one of several shapes, told apart by the value of `kind`. */
  readonly kinds: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly enums: Readonly<Record<string, readonly string[]>>;
  /** Members no object may have. */
  readonly banned: readonly string[];
}

export interface ShapeProblem {
  readonly requirement: RequirementId;
  readonly text: string;
}

/** Inside these anything goes: they belong to applications. */
const OPAQUE = new Set(["any", "object"]);
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/;
const BASE_64 = /^[A-Za-z0-9+/]*={0,2}$/;
const SNAKE_CASE = /^[a-z0-9]+(_[a-z0-9]+)+$/;

export function problemsOf(table: ShapeTable, type: string, value: unknown, path = type): ShapeProblem[] {
  const kinds = table.kinds[type];
  if (kinds !== undefined) return unionProblems(table, kinds, value, path);
  const shape = table.shapes[type];
  if (shape === undefined) return scalarProblems(table, type, value, path);
  const requirement = table.requirements[type] ?? "DM-TASK-001";
  if (!isObject(value)) return [{ requirement, text: `${path} is no object but ${show(value)}` }];
  return [
    ...memberNameProblems(table, shape, value, path),
    ...oneOfProblems(table.oneOf[type], value, path),
    ...Object.entries(shape).flatMap(([name, spec]) => memberProblems(table, requirement, value, name, spec, path)),
  ];
}

function unionProblems(
  table: ShapeTable,
  kinds: Readonly<Record<string, string>>,
  value: unknown,
  path: string,
): ShapeProblem[] {
  const kind = isObject(value) ? value.kind : undefined;
  const type = typeof kind === "string" && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (type !== undefined) return problemsOf(table, type, value, path);
  const expected = Object.keys(kinds).join(", ");
  return [{ requirement: "V03-KIND-001", text: `${path}.kind is ${show(kind)}, not one of ${expected}` }];
}

function memberProblems(
  table: ShapeTable,
  requirement: RequirementId,
  value: Fields,
  name: string,
  spec: string,
  path: string,
): ShapeProblem[] {
  const member = value[name];
  const [, type = "", list, required] = /^([^![]+)(\[\+?\])?(!)?$/.exec(spec) ?? [];
  const place = `${path}.${name}`;
  if (member === undefined) {
    const rule: RequirementId = name === "kind" ? "V03-KIND-001" : name === "final" ? "V03-FINAL-001" : requirement;
    return required === undefined ? [] : [{ requirement: rule, text: `${place} is missing` }];
  }
  if (list === undefined) return problemsOf(table, type, member, place);
  if (!Array.isArray(member)) return [{ requirement, text: `${place} is no list but ${show(member)}` }];
  const empty = list === "[+]" && member.length === 0 ? [{ requirement, text: `${place} is empty` }] : [];
  return [...empty, ...member.flatMap((item, at) => problemsOf(table, type, item, `${place}[${at}]`))];
}

function memberNameProblems(table: ShapeTable, shape: Shape, value: Fields, path: string): ShapeProblem[] {
  return Object.keys(value).flatMap((name): ShapeProblem[] => {
    if (Object.hasOwn(shape, name)) return [];
    if (table.banned.includes(name))
      return [{ requirement: "DM-SERIAL-006", text: `${path} has the member ${show(name)}` }];
    const snake = SNAKE_CASE.test(name) && Object.keys(shape).some((known) => known === toCamelCase(name));
    return snake ? [{ requirement: "DM-SERIAL-001", text: `${path} has the member ${show(name)}` }] : [];
  });
}

function toCamelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function oneOfProblems(members: readonly string[] | undefined, value: Fields, path: string): ShapeProblem[] {
  if (members === undefined) return [];
  const there = members.filter((name) => name in value);
  if (there.length === 1) return [];
  const text = `${path} has ${there.length === 0 ? "none" : there.join(" and ")} of ${members.join(", ")}`;
  return [{ requirement: "DM-PART-001", text }];
}

function scalarProblems(table: ShapeTable, type: string, value: unknown, path: string): ShapeProblem[] {
  const values = table.enums[type];
  if (values !== undefined) {
    const known = typeof value === "string" && values.includes(value);
    return known ? [] : [{ requirement: "DM-SERIAL-002", text: `${path} is ${show(value)}` }];
  }
  if (OPAQUE.has(type)) return [];
  const problem = (requirement: RequirementId): ShapeProblem[] => [{ requirement, text: `${path} is ${show(value)}` }];
  switch (type) {
    case "timestamp":
      return typeof value === "string" && TIMESTAMP.test(value) ? [] : problem("DM-SERIAL-003");
    case "bytes":
      return typeof value === "string" && BASE_64.test(value) ? [] : problem("DM-BYTES-001");
    case "id":
      return typeof value === "string" && value !== "" ? [] : problem("DM-TASK-001");
    case "boolean":
      return typeof value === "boolean" ? [] : problem("DM-TASK-001");
    case "string":
      return typeof value === "string" ? [] : problem("DM-TASK-001");
    default: {
      // A constant, such as the value of `kind`.
      return value === type.slice(1) ? [] : problem("V03-KIND-001");
    }
  }
}
