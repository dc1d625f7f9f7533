import { type ServedNames, servesName } from "#shared/fleet/served-names.ts";
import type { Log } from "#shared/ports.ts";

export interface ServingWorker {
  /** The zone of the worker. */
  readonly zone: string;
  readonly served: ServedNames;
  readonly log: Log;
}

/**
 * The zone's role may not read the rows of clusters of other names. While the stack with the role knows more names than that
 * of the worker, it may, and the worker reports that its stack has to be deployed.
 * @returns undefined when the cluster was left to the workers of `home`.
 */
export async function unlessRefused<T>(
  cluster: string,
  { zone, served, log }: ServingWorker,
  work: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (servesName(served, zone, cluster) || !isDenied(error)) throw error;
    log.warn("left a cluster whose name this zone does not serve to the workers of home", { cluster });
    return undefined;
  }
}

function isDenied(error: unknown): boolean {
  return error instanceof Error && error.name === "AccessDeniedException";
}
