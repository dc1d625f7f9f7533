import { expect, vi } from "vitest";

/** Repeats a question until the answer is the desired one. @throws after 20 seconds, with the last answer. */
export async function untilEqual<T>(ask: () => Promise<T>, desired: unknown): Promise<void> {
  await vi.waitFor(async () => expect(await ask()).toEqual(desired), { timeout: 20_000, interval: 50 });
}
