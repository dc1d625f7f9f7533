import { setTimeout as sleep } from "node:timers/promises";
import type { Interception } from "@starling/embedded-apiserver";
import type { World } from "#test/support/e2e-world.ts";

const pollEveryMs = 5;

/**
 * Delays the end of each change in a ring until `count` clusters are changing at once. So all slots are in use on a
 * machine of any speed.
 */
export function awaitFullSlots(
  { fleet, monitor }: Pick<World, "fleet" | "monitor">,
  ring: string,
  count: number,
): void {
  fleet.intercept(async ({ cluster }): Promise<Interception> => {
    if (!cluster.startsWith(`${ring}-`)) return "pass";
    while (monitor.changing().includes(cluster) && monitor.most().length < count) await sleep(pollEveryMs);
    return "pass";
  });
}
