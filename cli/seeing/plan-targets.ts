/** Finds the groups and Syncs for the arguments of a command. */
import { namespaceOf } from "#cli/seeing/change-options.ts";
import type { Changes } from "#cli/seeing/changes.ts";
import { type OwnerArgument, ownerArgument } from "#cli/seeing/owner-argument.ts";
import { usageFailure } from "#cli/session/failure.ts";
import { listPath } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import { quoted } from "#shared/base/shell-word.ts";
import type { SyncGroupObject } from "#shared/fleet/api/objects.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";

const mostGroups = 1000;

export interface PlanTarget extends OwnerArgument {
  /** The argument. */
  readonly target: string;
}

/** The named groups and Syncs, or every group of the namespace. @throws CliFailure for an argument that is neither. */
export async function planTargets(
  session: Session,
  groups: readonly string[],
  changes: Changes,
): Promise<readonly PlanTarget[]> {
  const namespace = namespaceOf(session, changes);
  const targets = groups.length > 0 ? groups : await allGroups(session, namespace, changes);
  const revision = changes.revisions.get("");
  if (revision !== undefined && targets.length > 1)
    throw usageFailure(
      `--revision must name a Source, because there are ${targets.length} groups`,
      `--revision NAME=${quoted(revision)}`,
    );
  return targets.map((target) => ({ target, ...ownerArgument(target, namespace) }));
}

async function allGroups(
  session: Session,
  namespace: string,
  { documents, from }: Changes,
): Promise<readonly string[]> {
  const written = documents.flatMap((document) =>
    document.kind === "SyncGroup" && document.metadata.namespace === namespace ? [document.metadata.name] : [],
  );
  // If only groups and Sources are given, only these groups are planned. Other documents may affect every group.
  const isAbout = written.length > 0 && documents.every(({ kind }) => kind === "SyncGroup" || kind === "Source");
  if (isAbout || from === "documents alone") return written;
  const path = listPath("SyncGroup", namespace);
  const { items } = await readList<SyncGroupObject | UnreadableObject>(session, { path, limit: mostGroups });
  return [...new Set([...items.map(({ metadata }) => metadata.name), ...written])].sort();
}
