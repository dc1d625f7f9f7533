/** Names of translated documents: other tools may give one name to what is one kind in Starling. */
import { canonicalJson, isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { joined, member, type Said, titleOf } from "#shared/fleet/foreign/translation.ts";
import { stringAt } from "#shared/kube/kube-object.ts";

const longestName = 63;

/**
 * All documents, of which no two have one kind, namespace and name. A later one with other content gets a number, and what
 * was made with it refers to the new name: a HelmRelease and the Kustomization around it often have one name.
 */
export function uniquelyNamed(all: readonly Said[]): Said {
  const taken = new Map<string, JsonObject>();
  return joined(
    all.map(({ documents, remarks }) => {
      const renamed = new Map<string, string>();
      const more: string[] = [];
      const named = documents.map((document) => {
        const name = freeName(document, taken);
        const before = stringAt(document, "metadata", "name") ?? "";
        if (name === before) return taken.set(titleOf(document), document) && document;
        const other = { ...document, metadata: { ...member(document, "metadata"), name } };
        taken.set(titleOf(other), other);
        more.push(`${titleOf(document)}: another document has this name, so that it is ${name} here`);
        if (document.kind === "Source") renamed.set(before, name);
        return other;
      });
      const documentsNow = named.map((document) => (renamed.size === 0 ? document : referring(document, renamed)));
      return { documents: documentsNow, remarks: [...remarks, ...more] };
    }),
  );
}

function freeName(document: JsonObject, taken: ReadonlyMap<string, JsonObject>): string {
  const name = stringAt(document, "metadata", "name") ?? "";
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? "" : `-${count}`;
    const tried = `${name.slice(0, longestName - suffix.length)}${suffix}`;
    const metadata = { ...member(document, "metadata"), name: tried };
    const other = taken.get(titleOf({ ...document, metadata }));
    if (other === undefined || canonicalJson(other) === canonicalJson({ ...document, metadata })) return tried;
  }
}

/** The document with the new names of Sources in every `source` of its templates. */
function referring(document: JsonObject, renamed: ReadonlyMap<string, string>): JsonObject {
  if (document.kind === "Source") return document;
  return replaced(document, renamed) as JsonObject;
}

function replaced(value: Json, renamed: ReadonlyMap<string, string>): Json {
  if (Array.isArray(value)) return value.map((item) => replaced(item, renamed));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      if (key === "source" && typeof item === "string") return [key, renamed.get(item) ?? item];
      return [key, key === "values" || item === undefined ? item : replaced(item, renamed)];
    }),
  );
}
