import { setTimeout as sleep } from "node:timers/promises";
import type { Interception } from "@starling/embedded-apiserver";
import type { World } from "#test/support/e2e-world.ts";

const lookEveryMs = 5;

/**
 * Keeps every cluster of the ring from ending its change until `count` clusters were changing at once, so that a bound
 * is used up whatever the speed of the machine.
 */
export function awaitFullHouse(
  { fleet, monitor }: Pick<World, "fleet" | "monitor">,
  ring: string,
  count: number,
): void {
  fleet.intercept(async ({ cluster }): Promise<Interception> => {
    if (!cluster.startsWith(`${ring}-`)) return "pass";
    while (monitor.changing().includes(cluster) && monitor.most().length < count) await sleep(lookEveryMs);
    return "pass";
  });
}
