/** The windows over a group: of the installation, of the documents, or of both. */
import { requireReadable } from "#cli/format/require-readable.ts";
import type { Changes } from "#cli/seeing/changes.ts";
import { allOfThem, type FleetView } from "#cli/seeing/fleet-view.ts";
import { listPath } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { WindowObject } from "#shared/fleet/api/objects.ts";
import type { UnreadableObject } from "#shared/fleet/api/unreadable-object.ts";
import { selectsGroup } from "#shared/fleet/kinds/group-selection.ts";
import type { NamedWindow } from "#shared/fleet/rows/windows-row.ts";

export async function groupWindows(
  session: Session,
  { owner, labels }: FleetView,
  { documents, from }: Changes,
): Promise<readonly NamedWindow[]> {
  const stored = from === "documents alone" ? [] : await storedWindows(session);
  const written = documents.flatMap((document): readonly NamedWindow[] =>
    document.kind === "Window" ? [{ name: document.metadata.name, ...document.spec }] : [],
  );
  const all = [...new Map([...stored, ...written].map((window) => [window.name, window])).values()];
  return all.filter(({ groups }) => groups === undefined || selectsGroup(groups, { ...owner, labels }));
}

async function storedWindows(session: Session): Promise<readonly NamedWindow[]> {
  const path = listPath("Window", undefined);
  const { items } = await readList<WindowObject | UnreadableObject>(session, { path, limit: allOfThem });
  return items.map((object) => {
    const { metadata, spec } = requireReadable(object);
    return { name: metadata.name, ...spec };
  });
}
