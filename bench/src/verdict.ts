import { type Measure, measures, type Samples, series } from "./measures.ts";
import { median, medianOfPairs } from "./statistics.ts";

interface Bound {
  atLeast?: number;
  atMost?: number;
}

/**
 * A target for one measure: of one contestant, or relative to another.
 * `times` checks the ratio of the two, `plus` their difference.
 */
export type Target = { measure: Measure; of: string } & Bound &
  ({ times: string } | { plus: string } | { alone: true });

export interface Verdict {
  text: string;
  /** Absent if one of the contestants could not be measured. */
  value?: number;
  met: boolean;
}

export function judge(targets: readonly Target[], samples: Samples): Verdict[] {
  return targets.map((target) => {
    const text = describe(target);
    const value = evaluate(target, samples);
    if (value === undefined) return { text, met: false };
    const met = value >= (target.atLeast ?? Number.NEGATIVE_INFINITY) && value <= (target.atMost ?? Infinity);
    return { text, value, met };
  });
}

function evaluate(target: Target, samples: Samples): number | undefined {
  const own = series(samples, target.of, target.measure);
  if (own.length === 0) return undefined;
  if ("alone" in target) return median(own);
  const other = series(samples, "times" in target ? target.times : target.plus, target.measure);
  if (other.length === 0) return undefined;
  return medianOfPairs(own, other, "times" in target ? (a, b) => a / b : (a, b) => a - b);
}

function describe(target: Target): string {
  const sign = target.atLeast === undefined ? "≤" : "≥";
  const bound = target.atLeast ?? target.atMost;
  const subject = `${target.of}: ${measures[target.measure].title} ${sign}`;
  if ("alone" in target) return `${subject} ${bound}`;
  return "times" in target ? `${subject} ${bound} × ${target.times}` : `${subject} ${target.plus} + ${bound}`;
}
