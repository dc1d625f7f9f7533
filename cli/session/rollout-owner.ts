/** Arguments that name a group or a Sync with rollouts. */
import { ApiFailure } from "#cli/session/api-client.ts";
import { CliFailure } from "#cli/session/failure.ts";
import { findKind, pathOfObject } from "#cli/session/kind-names.ts";
import type { Session } from "#cli/session/session.ts";

/**
 * Checks that an object exists, such as the owner of a rollout; a misspelt one never has a rollout or a log.
 * @throws ApiFailure `NotFound`
 */
export async function requireObject(
  session: Session,
  path: string,
  query: Readonly<Record<string, string>> = {},
): Promise<void> {
  try {
    await session.api.call({ method: "GET", path, query });
  } catch (error) {
    // Any other refusal means that it exists, such as a group's Sync on several clusters.
    if (isNotFound(error)) throw error;
  }
}

export function isNotFound(error: unknown): error is ApiFailure {
  return error instanceof ApiFailure && error.code === "NotFound";
}

/** `GROUP`, `syncgroup/GROUP` or `sync/NAME`. */
export function ownerPath(session: Session, text: string): string {
  const [first = "", name, ...more] = text.split("/");
  if (name === undefined) return pathOfObject({ kind: "SyncGroup", name: first }, session.namespace());
  const kind = findKind(first);
  if (more.length === 0 && (kind === "SyncGroup" || kind === "Sync"))
    return pathOfObject({ kind, name }, session.namespace());
  throw new CliFailure(`"${text}" has no rollouts; expected GROUP, syncgroup/GROUP or sync/NAME`, {
    exit: "wrongInput",
    next: `starling get syncgroups${session.where()}`,
  });
}
