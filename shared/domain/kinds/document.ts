/**
 * What a user writes, validated: one schema per kind gives the check, the type and the published JSON Schema.
 * Unknown fields are errors that name the field meant; a field that does nothing yet is not in the schema.
 */
import { z } from "zod";
import { clusterDocument } from "#shared/domain/kinds/cluster.ts";
import { isHidden } from "#shared/domain/kinds/hidden-value.ts";
import { API_VERSION } from "#shared/domain/kinds/metadata.ts";
import { sourceDocument } from "#shared/domain/kinds/source.ts";
import { syncDocument, syncGroupDocument } from "#shared/domain/kinds/sync-group.ts";
import { nearestName } from "#shared/domain/nearest-name.ts";

export const documentSchemas = {
  Source: sourceDocument,
  Cluster: clusterDocument,
  SyncGroup: syncGroupDocument,
  Sync: syncDocument,
} as const;

/** The kinds that people write. */
export type WritableKind = keyof typeof documentSchemas;
export type Document = z.infer<(typeof documentSchemas)[WritableKind]>;

/** What is wrong with one field: where, what was got, what to do. */
export interface FieldProblem {
  /** `spec.rollout.stages[1].clusters`; empty for the document itself. */
  readonly field: string;
  readonly message: string;
}

export type ParsedDocument =
  | { readonly ok: true; readonly document: Document }
  | { readonly ok: false; readonly problems: readonly FieldProblem[] };

export function parseDocument(value: unknown): ParsedDocument {
  const head = headProblem(value);
  if (head !== undefined) return { ok: false, problems: [head] };
  const schema = documentSchemas[(value as { kind: WritableKind }).kind];
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, document: parsed.data };
  return { ok: false, problems: parsed.error.issues.flatMap((issue) => problemsOf(issue, value)) };
}

/** The JSON Schema (draft 2020-12) of a kind as users write it: defaults are optional. */
export function jsonSchemaOf(kind: WritableKind): unknown {
  return z.toJSONSchema(documentSchemas[kind], { io: "input" });
}

function headProblem(value: unknown): FieldProblem | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return { field: "", message: `is ${describe(value)}; expected an object with apiVersion, kind, metadata and spec` };
  }
  const { apiVersion, kind } = value as { apiVersion?: unknown; kind?: unknown };
  if (apiVersion !== API_VERSION) {
    return { field: "apiVersion", message: `is ${describe(apiVersion)}; expected "${API_VERSION}"` };
  }
  if (typeof kind !== "string" || !Object.hasOwn(documentSchemas, kind)) {
    const meant = typeof kind === "string" ? nearestName(kind, Object.keys(documentSchemas)) : undefined;
    const known = Object.keys(documentSchemas).join(", ");
    return { field: "kind", message: `is ${describe(kind)}; expected one of ${known}${didYouMean(meant)}` };
  }
  return undefined;
}

function problemsOf(issue: z.core.$ZodIssue, root: unknown): FieldProblem[] {
  const field = fieldText(issue.path);
  if (issue.code === "unrecognized_keys") {
    const known = keysKnownAt(root, issue.path);
    return issue.keys.map((key) => ({
      field: field === "" ? key : `${field}.${key}`,
      message: `is not a field Starling knows${didYouMean(nearestName(key, known))}; remove it`,
    }));
  }
  const got = valueAt(root, issue.path);
  if (isHidden(issue)) return [{ field, message: issue.message }];
  if (got === undefined) return [{ field, message: `is required: ${lowerFirst(issue.message)}` }];
  return [{ field, message: `${issue.message} (got ${describe(got)})` }];
}

/** The keys the schema has where an unknown one was found: those that a minimal valid object there may carry. */
function keysKnownAt(root: unknown, path: readonly PropertyKey[]): readonly string[] {
  const kind = (root as { kind: WritableKind }).kind;
  let schema = z.toJSONSchema(documentSchemas[kind], { io: "input" }) as SchemaNode | undefined;
  for (const step of path) {
    schema =
      typeof step === "number" ? schema?.items : (schema?.properties?.[String(step)] ?? schema?.additionalProperties);
    if (schema?.anyOf !== undefined) schema = schema.anyOf.find((option) => option.properties !== undefined) ?? schema;
  }
  return Object.keys(schema?.properties ?? {});
}

interface SchemaNode {
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly additionalProperties?: SchemaNode;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly SchemaNode[];
}

function fieldText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) text += typeof step === "number" ? `[${step}]` : `${text === "" ? "" : "."}${String(step)}`;
  return text;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value: unknown = root;
  for (const step of path) value = (value as Record<PropertyKey, unknown> | undefined | null)?.[step];
  return value;
}

function describe(value: unknown): string {
  const json = typeof value === "bigint" ? value.toString() : (JSON.stringify(value) ?? "missing");
  // A password in a URL is refused, and no reason to print it.
  const text = json.replaceAll(/\/\/[^/]*@/g, "//***@");
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function didYouMean(name: string | undefined): string {
  return name === undefined ? "" : ` (did you mean ${name}?)`;
}
