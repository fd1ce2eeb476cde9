/** A rate that a vendor allows, with bursts: as many at once as the window has, then as time passes. */
export interface RateLimiter {
  /** 0: allowed, and counted. Otherwise the time until the next one is allowed. */
  take(key: string): number;
}

export function createRateLimiter(requests: number, windowMs: number, now: () => number = Date.now): RateLimiter {
  const taken = new Map<string, number[]>();
  return {
    take(key) {
      const recent = (taken.get(key) ?? []).filter((at) => at > now() - windowMs);
      taken.set(key, recent);
      const [oldest] = recent;
      if (oldest !== undefined && recent.length >= requests) return oldest + windowMs - now();
      recent.push(now());
      return 0;
    },
  };
}
