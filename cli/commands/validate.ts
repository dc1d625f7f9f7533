import { nextOpeningsText } from "#cli/format/describe-window.ts";
import { serialise } from "#cli/format/serialise.ts";
import { isData } from "#cli/output/output.ts";
import type { ExitReason } from "#cli/session/failure.ts";
import { readDocuments } from "#cli/session/read-documents.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";

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
  const { output } = session.options;
  if (isData(output)) {
    session.io.out(serialise({ valid: true, documents: documents.length }, output));
    return "done";
  }
  session.io.out(`${documents.length} ${documents.length === 1 ? "document is" : "documents are"} valid\n`);
  for (const { document } of documents) {
    if (document.kind !== "Window") continue;
    session.io.out(`\nWindow ${document.metadata.name} opens:\n${nextOpeningsText(document.spec, session.io.now())}`);
  }
  return "done";
}
