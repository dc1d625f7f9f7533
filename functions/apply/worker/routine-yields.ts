import type { WorkerPorts } from "#functions/apply/cluster/worker-ports.ts";
import type { HeldLease } from "#functions/apply/lease/held-lease.ts";
import type { ClusterClient } from "#shared/kube/cluster-client.ts";
import { KeptWaiting } from "#shared/kube/kept-waiting.ts";

/** Ends a routine check: another worker wants the lease, perhaps for a new assignment. */
class RoutineYields extends Error {
  constructor() {
    super("somebody wants the cluster's lease; the routine look is begun anew after that");
    this.name = "RoutineYields";
  }
}

/** The error tells nothing about the Sync: its check is left to another worker. */
export function yieldsTheCheck(error: unknown): boolean {
  return error instanceof RoutineYields || error instanceof KeptWaiting;
}

/** The result of a routine check, `desired` when it yielded, and `slow` when its cluster answers slowly. */
export async function unlessItYields<T>(check: Promise<T>): Promise<T | "desired" | "slow"> {
  try {
    return await check;
  } catch (error) {
    if (error instanceof RoutineYields) return "desired";
    if (error instanceof KeptWaiting) return "slow";
    throw error;
  }
}

/** The ports for routine checks: before each read they ask whether another worker wants the lease. */
export function yieldingPorts(lease: HeldLease, ports: WorkerPorts): WorkerPorts {
  const { connector } = ports;
  return {
    ...ports,
    connector: {
      connect: async (...how) => yieldingClient(await connector.connect(...how), { lease, hasWritten: false }),
      distrust: (cluster) => connector.distrust(cluster),
    },
  };
}

interface Check {
  readonly lease: HeldLease;
  /** The operation writes something that must be recorded, so it runs to its end. */
  hasWritten: boolean;
}

function yieldingClient(client: ClusterClient, check: Check): ClusterClient {
  const read = async <T>(ask: () => Promise<T>): Promise<T> => {
    // Another part of the operation may have written while the lease was asked.
    if (!check.hasWritten && (await check.lease.isRequested()) && !check.hasWritten) throw new RoutineYields();
    return ask();
  };
  const write = <T>(answer: Promise<T>): Promise<T> => {
    check.hasWritten = true;
    return answer;
  };
  return {
    guardedBy: (permit) => yieldingClient(client.guardedBy(permit), check),
    serverVersion: () => client.serverVersion(),
    lookup: (query) => client.lookup(query),
    listableKinds: () => client.listableKinds(),
    forgetKinds: () => client.forgetKinds(),
    get: (kind, key, options) => read(() => client.get(kind, key, options)),
    list: (kind, query) => read(() => client.list(kind, query)),
    apply: (kind, object, options) => write(client.apply(kind, object, options)),
    create: (kind, object) => write(client.create(kind, object)),
    replace: (kind, object) => write(client.replace(kind, object)),
    patch: (kind, key, operations) => write(client.patch(kind, key, operations)),
    delete: (kind, key, precondition) => write(client.delete(kind, key, precondition)),
  };
}
