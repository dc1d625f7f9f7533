import { CliFailure } from "#cli/session/failure.ts";
import { isUnreadable, type ListedObject, type UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { objectState } from "#shared/words/object-state.ts";

/** @returns the object. @throws CliFailure when only a newer version can read its row. */
export function requireReadable<O extends ListedObject>(object: O | UnreadableObject): O {
  if (!isUnreadable(object)) return object;
  const { namespace, name } = object.metadata;
  const what = `${object.kind} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
  throw new CliFailure(`${what} cannot be read: ${objectState(object).remark}`, {
    exit: "no",
    next: "starling version",
  });
}
