/** The rows of Sources become the facts that a plan needs. Pure. */
import { defined } from "#shared/base/defined.ts";
import type { SourceSpec } from "#shared/fleet/kinds/source.ts";
import { keys } from "#shared/fleet/rows/keys.ts";
import type { SourceRow } from "#shared/fleet/rows/object-rows.ts";
import type { PinRow } from "#shared/fleet/rows/pin-row.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { isMadeFrom } from "#shared/fleet/sources/pinned-revision.ts";

/**
 * The Sources among the rows, by name, each with the rows of its revisions at which templates stay. An artifact that the
 * Source makes no more, because it has another address or other keys now, counts as not found: it is looked for anew.
 */
export function sourcesAmong(rows: readonly Row[]) {
  const pins = pinsAmong(rows);
  return new Map(
    rows.filter(isSource).map(({ name, spec, status }) => {
      const found = [...(pins.get(name) ?? [])].map(([revision, pin]) => [revision, pinAt(spec, pin)] as const);
      return [name, { status, pins: new Map(found) }];
    }),
  );
}

function pinAt(spec: SourceSpec, { artifact, failure }: PinRow): Pick<PinRow, "artifact" | "failure"> {
  const isCurrent = artifact !== undefined && isMadeFrom(spec, artifact);
  return defined({ artifact: isCurrent ? artifact : undefined, failure });
}

/** The rows of revisions that templates name, by the name of the Source and by the revision. */
function pinsAmong(rows: readonly Row[]): ReadonlyMap<string, ReadonlyMap<string, PinRow>> {
  const found = new Map<string, Map<string, PinRow>>();
  for (const row of rows) {
    if (!isPin(row)) continue;
    const { name, revision } = keys.pin.read(row);
    found.set(name, (found.get(name) ?? new Map<string, PinRow>()).set(revision, row));
  }
  return found;
}

function isSource(row: Row): row is SourceRow {
  return row.type === "Source";
}

function isPin(row: Row): row is PinRow {
  return row.type === "Pin";
}
