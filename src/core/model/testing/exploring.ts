/** `npm run explore` looks for what is still unknown, so it tries many more cases than the suite. */
const EXPLORING = process.env.EXPLORE === "1";

/** How many cases of a property are tried when exploring, and in the suite: a tenth of them unless stated. */
export const cases = (exploring: number, usual = Math.ceil(exploring / 10)): number => (EXPLORING ? exploring : usual);
