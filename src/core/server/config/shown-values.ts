/** Values as shown to users. */
export type EffectiveScalar = string | number | boolean | null;
export type ShownValue = EffectiveScalar | undefined | readonly EffectiveScalar[];
export type ShownValues = Generator<readonly [path: string, value: ShownValue], void, undefined>;

export function* membersOf(path: string, values: Readonly<Record<string, ShownValue>> = {}): ShownValues {
  for (const [key, value] of Object.entries(values)) yield [`${path}.${key}`, value];
}
