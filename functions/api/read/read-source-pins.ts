import { ownersUsing } from "#shared/adapters/source-users.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { defined } from "#shared/base/defined.ts";
import type { PinnedRevisionItem } from "#shared/fleet/api/objects.ts";
import { relationOf } from "#shared/fleet/rollout/desired-plan.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import { isNewer } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";

/** The templates that stay at a revision of the Source, in the order of their owners. It reads owners only if there is a revision. */
export async function readSourcePins(row: SourceRow, table: Table): Promise<readonly PinnedRevisionItem[]> {
  const pins = await Array.fromAsync(
    allItems((start) => table.query({ ...ranges.pins(row), newer: "kept", ...start })),
  );
  if (pins.length === 0) return [];
  const known = new Map(pins.filter((pin) => !isNewer(pin)).map((pin) => [keys.pin.read(pin).revision, pin]));
  const owners = await ownersUsing(row, table);
  const named = owners.map(({ namespace, kind, name }) => keys.object(namespace, kind, name));
  const rows = await table.getMany<"SyncGroup" | "Sync", "kept">(named, { newer: "kept" });
  const items = rows.flatMap((owner) =>
    isNewer(owner)
      ? []
      : relationOf(owner).templates.flatMap(({ name: template, source, revision }) => {
          if (source !== row.name || revision === undefined) return [];
          const { artifact, failure } = known.get(revision) ?? {};
          const found = artifact && { revision: artifact.revision, digest: artifact.digest };
          return [
            { revision, owner: { kind: owner.type, name: owner.name }, template, ...defined({ found, failure }) },
          ];
        }),
  );
  const place = ({ owner, template }: PinnedRevisionItem) => `${owner.kind}/${owner.name}/${template}`;
  return items.sort((a, b) => (place(a) < place(b) ? -1 : 1));
}
