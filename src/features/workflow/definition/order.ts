/** The order in which steps can run, and the cycles that leave none. */

type Needs = ReadonlyMap<string, readonly string[]>;

/**
 * The steps in an order in which each follows what it needs, otherwise as they were written. Cycles are lists of steps
 * of which each needs the next and the last the first; there is one for each that would have to be cut.
 */
export function orderSteps(needs: Needs): {
  readonly order: readonly string[];
  readonly cycles: readonly (readonly string[])[];
} {
  const waiting = new Map(
    [...needs].map(([name, before]) => [name, new Set(before.filter((step) => needs.has(step)))]),
  );
  const dependants = new Map<string, string[]>([...needs.keys()].map((name) => [name, []]));
  for (const [name, before] of waiting) for (const step of before) dependants.get(step)?.push(name);
  const places = new Map([...needs.keys()].map((name, place) => [name, place]));
  const order: string[] = [];
  const cycles: string[][] = [];
  const finish = (name: string): string[] => {
    waiting.delete(name);
    const freed = dependants.get(name) ?? [];
    return freed.filter((step) => waiting.get(step)?.delete(name) === true && waiting.get(step)?.size === 0);
  };
  let ready = [...needs.keys()].filter((name) => waiting.get(name)?.size === 0);
  while (waiting.size > 0) {
    while (ready.length > 0) {
      const freed = ready.flatMap((name) => {
        order.push(name);
        return finish(name);
      });
      ready = freed.sort((one, other) => (places.get(one) ?? 0) - (places.get(other) ?? 0));
    }
    const cycle = findCycle(waiting);
    if (cycle === undefined) break;
    cycles.push(cycle);
    ready = finish(cycle[0] as string);
  }
  return { order, cycles };
}

/** Where every step waits for another, following them leads into a cycle. */
function findCycle(waiting: ReadonlyMap<string, ReadonlySet<string>>): string[] | undefined {
  const trail: string[] = [];
  const places = new Map<string, number>();
  let [name] = waiting.keys();
  while (name !== undefined) {
    const place = places.get(name);
    if (place !== undefined) return trail.slice(place);
    places.set(name, trail.length);
    trail.push(name);
    [name] = waiting.get(name) ?? [];
  }
  return undefined;
}
