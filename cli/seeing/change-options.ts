import type { Changes } from "#cli/seeing/changes.ts";
import { usageFailure } from "#cli/session/failure.ts";
import { type CheckedDocument, invalid, readDocuments, reported } from "#cli/session/read-documents.ts";
import type { Session } from "#cli/session/session.ts";
import { askWhoAmI } from "#cli/session/who-am-i.ts";
import { defined } from "#shared/base/defined.ts";
import { secretProblems, secretsOf } from "#shared/fleet/kinds/secret-folder.ts";

/** The flags with which `render`, `plan` and `diff` replace parts of the installation. */
export interface ChangeOptions {
  /** NAME=FOLDER */
  readonly source?: readonly string[];
  /** NAME=REVISION, or REVISION if there is one Source */
  readonly revision?: readonly string[];
  readonly filename?: readonly string[];
  readonly recursive?: boolean;
  readonly offline?: boolean;
}

/** @throws CliFailure for a value that is not NAME=FOLDER, and for invalid documents. */
export async function readChanges(session: Session, options: ChangeOptions): Promise<Changes> {
  const folders = new Map<string, string>();
  for (const text of options.source ?? []) {
    const [, name, folder] = /^([^=]+)=(.+)$/.exec(text) ?? [];
    if (name === undefined || folder === undefined)
      throw usageFailure(`--source is "${text}"; expected the name of a Source and a folder`, "--source app=./app");
    folders.set(name, folder);
  }
  const revisions = new Map<string, string>();
  for (const text of options.revision ?? []) {
    const [, name = "", revision = ""] = /^(?:([^=]*)=)?(.*)$/s.exec(text) ?? [];
    if (revision === "" || (name === "" && text.includes("=")))
      throw usageFailure(`--revision is "${text}"; expected a branch, tag or commit`, "--revision app=feature/x");
    if (folders.has(name))
      throw usageFailure(`Source ${name} is given both as a folder and as a revision`, `--source ${name}=FOLDER`);
    revisions.set(name, revision);
  }
  const isOffline = options.offline === true;
  if (isOffline && options.filename === undefined)
    throw usageFailure("--offline needs documents", "--offline -f FILE, with the group, its clusters and their values");
  const namespace = session.documentNamespace();
  const documents =
    options.filename === undefined
      ? []
      : await readDocuments(session.io, {
          paths: options.filename,
          folders: options.recursive === true ? "recursive" : "flat",
          ...defined({ namespace }),
        });
  if (!isOffline) await refuseUnreadableSecrets(session, documents);
  return {
    documents: documents.map(({ document }) => document),
    folders,
    revisions,
    from: isOffline ? "documents alone" : "installation",
  };
}

/** The installation says its name, which is a part of the names that it can read. */
async function refuseUnreadableSecrets(session: Session, documents: readonly CheckedDocument[]): Promise<void> {
  const naming = documents.filter(({ document }) => secretsOf(document).length > 0);
  if (naming.length === 0) return;
  const { installation } = await askWhoAmI(session);
  const problems = naming.flatMap(({ document, from }) =>
    secretProblems(document, installation).map((problem) => ({ from, ...problem })),
  );
  if (problems.length > 0) throw invalid({ lines: reported(problems), count: problems.length }, documents.length);
}

/**
 * Refuses a Source that nothing uses. Its name is a typing error, and the output would not show the requested change.
 * @param used - names of the Sources of the planned groups.
 */
export function refuseUnused({ folders, revisions }: Changes, used: ReadonlySet<string>): void {
  const known = [...used].sort().join(", ");
  for (const [flag, names] of [
    ["--source", [...folders.keys()]],
    ["--revision", [...revisions.keys()]],
  ] as const) {
    const unused = names.find((name) => name !== "" && !used.has(name));
    if (unused !== undefined)
      throw usageFailure(
        `${flag} names Source ${unused}, which is not used here; used Sources: ${known}`,
        "starling get sources",
      );
  }
}

/** The namespace of `-n` or of the context. With `--offline` and neither of them: the namespace of the documents. */
export function namespaceOf(session: Session, { documents, from }: Changes): string {
  const said = session.documentNamespace()?.name;
  if (said !== undefined || from === "installation") return said ?? session.namespace();
  const metadata = documents.map((document) => document.metadata).find((one) => "namespace" in one);
  return metadata?.namespace ?? session.namespace();
}
