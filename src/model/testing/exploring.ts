/** Whether this is `npm run explore`, which looks for what no one knows of yet, rather than the suite that every change passes. */
const EXPLORING = process.env.EXPLORE === "1";

/** How many cases to try: enough to notice a known mistake again, or as many as there is time for. */
export const cases = (usual: number, exploring: number): number => (EXPLORING ? exploring : usual);
