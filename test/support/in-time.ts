import { errorMessage } from "#shared/base/errors.ts";
import { runWaitSeconds } from "#test/support/chaos-story.ts";
import type { World } from "#test/support/e2e-world.ts";

/** Says what comes next in a play, and in which world, once there is one. */
export type Step = (next: string, world?: World) => void;

/** How long a description of what is stuck may take, itself. */
const describeMs = 10_000;

/**
 * Plays something that is over in time even where something is waited for that never comes: whoever waits for it is left
 * alone.
 * @throws Error with the step that it was at, and what its world looked like, when it is not over in time.
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
      new Error(`not over within ${seconds} s; last step: ${at}; process waits for ${waits}\n${await look(world)}`),
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

async function look(world: World | undefined): Promise<string> {
  const { promise: blind, resolve } = Promise.withResolvers<string>();
  const timer = setTimeout(resolve, describeMs, "its world cannot be described: that takes too long as well");
  const seen = world?.describe().catch((error: unknown) => `its world cannot be described: ${errorMessage(error)}`);
  try {
    return await Promise.race([seen ?? "it has no world yet", blind]);
  } finally {
    clearTimeout(timer);
  }
}
