export interface ExpansionFault {
  /** The faulty text as it is written. */
  readonly expression: string;
  readonly message: string;
}

export interface Expansion {
  readonly value: string;
  /** Variables the value was made of, whether set or not. */
  readonly variables: readonly string[];
  readonly faults: readonly ExpansionFault[];
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** `$${` (a literal `${`), `${NAME}`, `${NAME:-default}`, or a `${` that is none of these. */
const EXPRESSION = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{/g;

/** Puts environment variables into a text. A default stands in for a variable that is unset or empty, as in shells. */
export function expand(text: string, environment: Environment): Expansion {
  const variables: string[] = [];
  const faults: ExpansionFault[] = [];
  const value = text.replace(
    EXPRESSION,
    (expression: string, name: string | undefined, otherwise: string | undefined) => {
      if (expression === "$${") return "${";
      if (name === undefined) {
        faults.push({
          expression,
          message: `cannot read this; write \${NAME} or \${NAME:-default}, or $\${ for a plain \${`,
        });
        return expression;
      }
      variables.push(name);
      const set = Object.hasOwn(environment, name) ? environment[name] : undefined;
      if (otherwise !== undefined) return set === undefined || set === "" ? otherwise : set;
      if (set !== undefined) return set;
      faults.push({
        expression,
        message: `the environment variable ${name} is not set; set it, or write \${${name}:-default}`,
      });
      return expression;
    },
  );
  return { value, variables, faults };
}
