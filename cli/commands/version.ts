import { readFileSync } from "node:fs";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import type { ExitReason } from "#cli/session/failure.ts";
import type { Session } from "#cli/session/session.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";

export async function version(session: Session): Promise<ExitReason> {
  const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  const { output } = session.options;
  const node = process.versions.node;
  if (isData(output)) {
    session.io.out(serialise({ version: manifest.version, apiVersion: ourApiVersion, node }, output));
    return "done";
  }
  session.io.out(`starling ${manifest.version} (${ourApiVersion}, Node ${node})\n`);
  return "done";
}
