import { documentReference, type ObjectReference, objectKey } from "#functions/api/request/reference.ts";
import type { Document } from "#shared/fleet/kinds/document.ts";
import { foldersOf, includedIn } from "#shared/fleet/kinds/source.ts";
import { templateSources } from "#shared/fleet/kinds/template-sources.ts";
import { keyText } from "#shared/fleet/rows/row.ts";
import type { Table } from "#shared/ports.ts";
import { isWithin, normalFolder } from "#shared/source/tree-listing.ts";

/** Folders that a Source makes available, by its key. */
type Parts = ReadonlyMap<string, readonly string[]>;

/**
 * A missing Source, or a missing folder in it, is no error, because it may be added later. It is a warning, because
 * nothing happens until then.
 */
export async function sourceWarnings(
  table: Table,
  documents: readonly Document[],
): Promise<readonly (readonly string[])[]> {
  const named = documents.map((document) =>
    document.kind === "Source" ? includedIn(document.spec) : templatesOf(document).flatMap(templateSources),
  );
  const desired = documents.map((document, index) =>
    [...new Set(named[index])].map((name) => reference(document, name)),
  );
  const parts = await partsOf(table, desired.flat(), documents);
  return documents.map((document, index) => {
    const absent = (desired[index] ?? []).filter((source) => !parts.has(keyText(objectKey(source))));
    const what = document.kind === "Source" ? "no artifact is made" : "nothing is rolled out";
    return [...absent.map((source) => absentText(source, what)), ...pathWarnings(document, parts)];
  });
}

function templatesOf(document: Document) {
  if (document.kind === "Sync") return [{ name: undefined, overrides: [], ...document.spec }];
  return document.kind === "SyncGroup" ? document.spec.templates : [];
}

function reference(document: Document, name: string): ObjectReference & { readonly kind: "Source" } {
  return { kind: "Source", namespace: documentReference(document).namespace ?? "", name };
}

/** Sources that exist, or are written in the same request; an unreadable row counts as existing, with every folder. */
async function partsOf(
  table: Table,
  desired: readonly ObjectReference[],
  documents: readonly Document[],
): Promise<Parts> {
  const rows = await table.getMany(desired.map(objectKey), { newer: "kept" });
  const known = rows.map((row) => [keyText(row), row.type === "Source" ? foldersOf(row.spec) : ["."]] as const);
  const own = documents.flatMap((document) =>
    document.kind === "Source"
      ? [[keyText(objectKey(documentReference(document))), foldersOf(document.spec)] as const]
      : [],
  );
  return new Map([...known, ...own]);
}

function absentText({ namespace, name }: ObjectReference, what: string): string {
  return `Source ${name} does not exist in namespace ${namespace} yet: ${what} until it does`;
}

/** Folders that no artifact of the Source will have. The value of an expression is known for a cluster only. */
function pathWarnings(document: Document, parts: Parts): readonly string[] {
  return templatesOf(document).flatMap(({ name, source, path, overrides = [] }) => {
    const has = parts.get(keyText(objectKey(reference(document, source))));
    if (has === undefined) return [];
    const paths = [path, ...overrides.flatMap((override) => override.path ?? [])];
    const outside = paths.filter((each) => !each.includes("{{") && !isMadeAvailable(normalFolder(each), has));
    const where = name === undefined ? "" : `template ${name}: `;
    return [...new Set(outside)].map(
      (each) =>
        `${where}path ${each} is in none of the paths of Source ${source} (${has.join(", ")}): ` +
        "nothing is rolled out until it is; name a folder in one of them, or add it to the Source's spec.paths",
    );
  });
}

/** A folder above an included part is in the artifact as well. */
function isMadeAvailable(folder: string, parts: readonly string[]): boolean {
  return isWithin(folder, parts) || parts.some((part) => isWithin(part, [folder]));
}
