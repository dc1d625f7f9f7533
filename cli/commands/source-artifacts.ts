import { artifactsTable } from "#cli/format/artifacts-text.ts";
import { printTable } from "#cli/format/print-table.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import type { ExitReason } from "#cli/session/failure.ts";
import { artifactsPath } from "#cli/session/kind-names.ts";
import { readList } from "#cli/session/read-list.ts";
import type { Session } from "#cli/session/session.ts";
import type { ArtifactItem } from "#shared/fleet/api/artifact-item.ts";

export interface ArtifactsOptions {
  readonly limit: number;
}

/** Lists the artifacts of a Source. */
export async function artifacts(session: Session, source: string, { limit }: ArtifactsOptions): Promise<ExitReason> {
  const list = await readList<ArtifactItem>(session, { path: artifactsPath(source, session.namespace()), limit });
  const { output } = session.options;
  if (isData(output)) session.io.out(serialise(list, output));
  else if (list.items.length === 0) session.note(`Source ${source} has no artifact yet`);
  else printTable(session, artifactsTable(list.items, session.io.now(), output));
  return "done";
}
