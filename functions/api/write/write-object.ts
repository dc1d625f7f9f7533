import type { ApiPorts, Caller } from "#functions/api/request/api-ports.ts";
import { type ObjectReference, objectKey, objectText } from "#functions/api/request/reference.ts";
import { refusal } from "#functions/api/request/refusal.ts";
import { registered } from "#functions/api/request/registered.ts";
import type { ObjectChange, WrittenRow } from "#functions/api/write/object-change.ts";
import { ownersTaking } from "#shared/adapters/concerned-owners.ts";
import { writeWithFleet } from "#shared/adapters/fleet-writes.ts";
import { wakeUnreachable } from "#shared/adapters/wake-unreachable.ts";
import { defined } from "#shared/base/defined.ts";
import { isConflict, isRowTooLarge, type StarlingError } from "#shared/base/errors.ts";
import { inParts } from "#shared/base/in-parts.ts";
import { type SelectableCluster, selects } from "#shared/fleet/kinds/cluster-selection.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import { distinctMessages, type Message } from "#shared/messages.ts";

/**
 * Number of tries: other writers of the row finish in milliseconds, so that this many lost races in a row are no
 * accident.
 */
const maxTries = 6;
const senders = 8;

export interface ObjectWrite {
  readonly reference: ObjectReference;
  readonly verb: string;
  readonly caller: Caller;
  /** Decides on the row as it is now; called again when another writer was faster. */
  readonly decide: (before: WrittenRow | undefined) => ObjectChange;
}

/** Reads, decides and writes under the version that was read, and writes the audit line. Sends no message. */
export async function writeObject(ports: ApiPorts, write: ObjectWrite): Promise<ObjectChange> {
  for (let attempt = 1; attempt <= maxTries; attempt++) {
    const before = await readWritten(ports, write.reference);
    const change = write.decide(before);
    if (change.writes.length === 0) return change;
    try {
      await writeWithFleet(ports.table, change.writes);
    } catch (error) {
      if (isConflict(error)) continue;
      if (isRowTooLarge(error)) throw tooLarge(write.reference);
      throw error;
    }
    audit(ports, {
      verb: write.verb,
      caller: write.caller,
      reference: write.reference,
      before: before?.generation,
      after: change.after.generation,
    });
    return change;
  }
  throw refusal(
    "Conflict",
    `${objectText(write.reference)} was being written by others ${maxTries} times in a row; try again`,
  );
}

/**
 * The row of an object that will be written; a Cluster comes with its entry in the fleet's directory.
 * @throws StarlingError `NewerRow` for either.
 */
async function readWritten({ table }: ApiPorts, reference: ObjectReference): Promise<WrittenRow | undefined> {
  const entries = reference.kind === "Cluster" ? [keys.fleet(reference.name)] : [];
  const rows = await table.getMany([objectKey(reference), ...entries]);
  return rows.find((row) => row.type !== "Fleet");
}

function tooLarge(reference: ObjectReference): StarlingError {
  const remedy = "shorten its annotations, values or lists of names";
  return refusal("RowTooLarge", `${objectText(reference)} and its status are larger than a row may be: ${remedy}`);
}

export interface AuditEntry {
  readonly verb: string;
  readonly caller: Caller;
  readonly reference: ObjectReference | { readonly kind: "Freeze"; readonly name: string };
  readonly before: number | undefined;
  readonly after: number | undefined;
}

/** One line for each write: who changed which object, from which generation to which, and why. */
export function audit(ports: ApiPorts, entry: AuditEntry): void {
  ports.log.info("write", {
    audit: true,
    verb: entry.verb,
    principal: entry.caller.principal,
    ...defined({ reason: entry.caller.reason }),
    ...entry.reference,
    generationBefore: entry.before ?? 0,
    generationAfter: entry.after ?? 0,
  });
}

/**
 * Sends each message once, and one to every owner that selects a changed cluster. Syncs that wait for a cluster that did not
 * answer are tried at once when the cluster is reached in another way.
 */
export async function sendAfter(ports: ApiPorts, changes: readonly ObjectChange[]): Promise<void> {
  const messages = changes.flatMap((change) => change.messages);
  const selections = changes.flatMap((change) => change.selections ?? []);
  const isMeant = (cluster: SelectableCluster) => selections.some((selection) => selects(selection, cluster));
  const clusters = [
    ...changes.flatMap((change) => change.clusters),
    ...(selections.length === 0 ? [] : (await registered(ports.table)).filter(isMeant)),
  ];
  if (clusters.length > 0) messages.push(...(await ownersTaking(clusters, ports.table)));
  await sendSideBySide(ports, distinctMessages(messages));
  const rerouted = changes.flatMap(({ rerouted: cluster }) => cluster ?? []);
  const woken = await wakeUnreachable(ports, rerouted);
  await sendSideBySide(
    ports,
    woken.map((cluster) => ({ to: "apply", cluster })),
  );
}

/** Batches at once: thousands one after the other would take longer than a caller waits. */
export async function sendSideBySide({ sender }: ApiPorts, messages: readonly Message[]): Promise<void> {
  const share = Math.max(10, Math.ceil(messages.length / senders));
  await Promise.all(inParts(messages, share).map((part) => sender.send(part)));
}
