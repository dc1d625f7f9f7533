import { expect, vi } from "vitest";

/** Asks until the answer is the one that is wanted, or 20 seconds are over: then it says which it was. */
export async function untilEqual<T>(ask: () => Promise<T>, desired: unknown): Promise<void> {
  await vi.waitFor(async () => expect(await ask()).toEqual(desired), { timeout: 20_000, interval: 50 });
}
