import { requireReadable } from "#cli/format/require-readable.ts";
import { ApiFailure } from "#cli/session/api-client.ts";
import { confirmConsequences } from "#cli/session/confirm.ts";
import { CliFailure, type ExitReason, usageFailure } from "#cli/session/failure.ts";
import { parseOne, pathOfObject, shortName } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { plainLine } from "#shared/base/plain-text.ts";
import type { SyncObject } from "#shared/fleet/api/objects.ts";
import type { ForeignObject } from "#shared/kube/membership.ts";
import { describeObject } from "#shared/kube/object-id.ts";

export interface PruneOptions {
  readonly cluster?: string;
  readonly dryRun?: boolean;
}

/** Deletes objects with the Sync's label that its inventory lacks. `describe` lists them, and the command shows them first. */
export async function prune(session: Session, args: readonly string[], options: PruneOptions): Promise<ExitReason> {
  const object = parseOne(args, "prune");
  if (object.kind !== "Sync")
    throw usageFailure(`prune needs a Sync; a ${object.kind} has no objects in clusters`, "starling prune sync/NAME");
  if (object.name.includes(".") && options.cluster === undefined) {
    const next = `starling get sync ${object.name} -n ${session.namespace()}   (lists the clusters)`;
    throw usageFailure(`sync/${object.name} is on several clusters; choose one with --cluster`, next);
  }
  session.announce();
  const path = pathOfObject(object, session.namespace());
  const query = { cluster: options.cluster };
  const sync = requireReadable(await session.api.call<SyncObject>({ method: "GET", path, query }));
  const { cluster } = sync.spec;
  const foreign = sync.status.observed?.foreign ?? [];
  const found = foreign.filter(({ member, keep }) => member && keep === undefined);
  session.io.out(listed(found, foreign.length - found.length));
  if (options.dryRun === true || found.length === 0) return "done";
  const { reason } = session.options;
  const uids = found.map(({ uid }) => uid);
  const body = { uids, cluster, ...defined({ reason }) };
  const command = `starling prune ${shortName(object)} --cluster ${cluster}${session.where()}`;
  await asked(session, { path, body, command });
  session.io.out(`${shortName(object)} will be pruned on ${cluster}\n`);
  session.note(
    `  next: starling describe ${shortName(object)} --cluster ${cluster}${session.where()}   (until they are deleted)`,
  );
  if (reason === undefined) session.note("no reason is recorded; --reason TEXT records one");
  return "done";
}

function listed(found: readonly ForeignObject[], others: number): string {
  const lines = found.map(({ id, uid }) => `${plainLine(`${describeObject(id)}   uid ${uid}`)}\n`);
  const rest = others === 0 ? "" : `not pruned: ${others} (they only copy the label, or are annotated to be kept)\n`;
  return `${found.length === 0 ? "nothing to prune\n" : lines.join("")}${rest}`;
}

async function asked(
  session: Session,
  { path, body, command }: { path: string; body: Readonly<Record<string, unknown>>; command: string },
): Promise<void> {
  const request = { method: "POST", path: `${path}/prune` } as const;
  try {
    await session.api.call({ ...request, body });
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error;
    if (error.code === "ForeignChanged")
      throw new CliFailure(error.message, { exit: "no", next: `${command} --dry-run` });
    if (error.code !== "ConfirmationRequired") throw error;
    await confirmConsequences(session, error, `${command} --yes`);
    await session.api.call({ ...request, body: { ...body, confirm: true } });
  }
}
