import { errorMessage } from "#shared/base/errors.ts";
import { runWaitSeconds } from "#test/support/chaos-story.ts";
import type { World } from "#test/support/e2e-world.ts";

/** Reports the next step of a play, and its world once it exists. */
export type Step = (next: string, world?: World) => void;

/** The time limit for the description of a stuck world. */
const describeMs = 10_000;

/**
 * Runs a play with a time limit, even if one of its steps waits forever. @throws Error with the current step and a
 * description of the world when the time is over.
 */
export async function inTime<T>(rate: number, play: (step: Step) => Promise<T>): Promise<T> {
  const seconds = runWaitSeconds(rate);
  let at = "start";
  let world: World | undefined;
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(async () => {
    const waiting = Map.groupBy(process.getActiveResourcesInfo(), (kind) => kind);
    const waits = [...waiting].map(([kind, all]) => `${all.length} ${kind}`).join(", ");
    reject(
      new Error(`not over within ${seconds} s; last step: ${at}; process waits for ${waits}\n${await describe(world)}`),
    );
  }, seconds * 1000);
  try {
    return await Promise.race([
      late,
      play((next, its = world) => {
        at = next;
        world = its;
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

async function describe(world: World | undefined): Promise<string> {
  const { promise: blind, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(resolve, describeMs, "its world cannot be described: that takes too long as well");
  const seen = world?.describe().catch((error: unknown) => `its world cannot be described: ${errorMessage(error)}`);
  try {
    return await Promise.race([seen ?? "it has no world yet", blind]);
  } finally {
    clearTimeout(timer);
  }
}
