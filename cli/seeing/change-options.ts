import type { Changes } from "#cli/seeing/fleet-view.ts";
import { usageFailure } from "#cli/session/failure.ts";
import { readDocuments } from "#cli/session/read-documents.ts";
import type { Session } from "#cli/session/session.ts";
import { defined } from "#shared/base/defined.ts";

/** What is to be seen instead of what is there, as verbs take it. */
export interface ChangeOptions {
  /** NAME=FOLDER */
  readonly source?: readonly string[];
  readonly filename?: readonly string[];
  readonly recursive?: boolean;
  readonly offline?: boolean;
}

/** @throws CliFailure for what is no NAME=FOLDER, and for documents that are wrong. */
export async function readChanges(session: Session, options: ChangeOptions): Promise<Changes> {
  const folders = new Map<string, string>();
  for (const text of options.source ?? []) {
    const [, name, folder] = /^([^=]+)=(.+)$/.exec(text) ?? [];
    if (name === undefined || folder === undefined)
      throw usageFailure(`--source is "${text}"; expected the name of a Source and a folder`, "--source app=./app");
    folders.set(name, folder);
  }
  const isOffline = options.offline === true;
  if (isOffline && options.filename === undefined)
    throw usageFailure(
      "--offline has no documents to go by",
      "--offline -f FILE, with the group, its clusters and their values",
    );
  const namespace = session.documentNamespace();
  const documents =
    options.filename === undefined
      ? []
      : await readDocuments(session.io, {
          paths: options.filename,
          folders: options.recursive === true ? "recursive" : "flat",
          ...defined({ namespace }),
        });
  return {
    documents: documents.map(({ document }) => document),
    folders,
    from: isOffline ? "documents alone" : "installation",
  };
}

/** That of the context, or of `-n`; offline, where neither says one, that of the documents. */
export function namespaceOf(session: Session, { documents, from }: Changes): string {
  const said = session.documentNamespace()?.name;
  if (said !== undefined || from === "installation") return said ?? session.namespace();
  const metadata = documents.map((document) => document.metadata).find((one) => "namespace" in one);
  return metadata?.namespace ?? session.namespace();
}
