import { nextOpeningsText } from "#cli/format/describe-window.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import type { ExitReason } from "#cli/session/failure.ts";
import { readDocuments } from "#cli/session/read-documents.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";
import { secretFormWarnings } from "#shared/fleet/kinds/secret-folder.ts";
import { neverOpensText } from "#shared/fleet/windows/never-opens.ts";

export interface ValidateOptions {
  readonly filename: readonly string[];
  readonly recursive?: boolean;
}

/** Checks documents offline with the API's rules. Needs no credentials and no network; uses only the context's namespace. */
export async function validate(session: Session, options: ValidateOptions): Promise<ExitReason> {
  const namespace = session.documentNamespace();
  const documents = await readDocuments(session.io, {
    paths: options.filename,
    folders: options.recursive === true ? "recursive" : "flat",
    ...defined({ namespace }),
  });
  const now = session.io.now();
  const windows = documents.flatMap(({ document }) => (document.kind === "Window" ? [document] : []));
  const closed = windows.flatMap(({ metadata, spec }) => {
    const text = neverOpensText(spec, now);
    return text === undefined ? [] : [`window/${metadata.name}: ${text}`];
  });
  const secrets = documents.flatMap(({ document }) =>
    secretFormWarnings(document).map((text) => `${document.kind.toLowerCase()}/${document.metadata.name}: ${text}`),
  );
  const warnings = [...closed, ...secrets];
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise({ valid: true, documents: documents.length, warnings }, output));
    return "done";
  }
  session.io.out(`${documents.length} ${documents.length === 1 ? "document is" : "documents are"} valid\n`);
  for (const { metadata, spec } of windows)
    session.io.out(`\nWindow ${metadata.name} opens:\n${nextOpeningsText(spec, now)}`);
  for (const warning of warnings) session.note(`warning: ${warning}`);
  return "done";
}
