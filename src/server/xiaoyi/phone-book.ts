/** Where users can be told things when they do not look: the devices they have spoken from. */
import type { PhoneAddress } from "../../dialects/xiaoyi/notification.ts";
import type { KeptMap } from "./kept-map.ts";

type Kept = { readonly pushId: string; readonly loginSessionId: string | null };

/** The newest ones of a user; whoever has more of them does not carry all of them about. */
const MOST_DEVICES = 8;

export class PhoneBook {
  readonly #devices: KeptMap<readonly Kept[]>;

  constructor(devices: KeptMap<readonly Kept[]>) {
    this.#devices = devices;
  }

  /** `whose`: the devices of one user, as far as one can tell. */
  async note(whose: string, { loginSessionId: login, pushId }: NotedAddress): Promise<void> {
    const loginSessionId = login ?? null;
    await this.#devices.update(whose, (before = []) => {
      const newest = before.at(-1);
      if (newest?.pushId === pushId && newest.loginSessionId === loginSessionId) return before;
      const others = before.filter((device) => device.pushId !== pushId);
      return [...others, { pushId, loginSessionId }].slice(-MOST_DEVICES);
    });
  }

  async of(whose: string): Promise<readonly PhoneAddress[]> {
    const devices = (await this.#devices.get(whose)) ?? [];
    return devices.map(({ loginSessionId, pushId }) =>
      loginSessionId === null ? { pushId } : { pushId, loginSessionId },
    );
  }
}

export interface NotedAddress {
  readonly pushId: string;
  readonly loginSessionId?: string | undefined;
}
