/**
 * Validates documents of users: one schema for each kind gives the check, the type and the published JSON Schema. An
 * unknown field is an error that names the field meant; a field without an effect is not in the schema.
 */
import * as z from "zod";
import { excerpt, excerptOf } from "#shared/base/excerpt.ts";
import { findPath } from "#shared/base/find-path.ts";
import type { Json } from "#shared/base/json.ts";
import { didYouMean } from "#shared/base/nearest-name.ts";
import { clusterDocument } from "#shared/fleet/kinds/cluster.ts";
import { clusterDiscoveryDocument } from "#shared/fleet/kinds/cluster-discovery.ts";
import { clusterValuesDocument } from "#shared/fleet/kinds/cluster-values.ts";
import { fieldText, issueWords, withoutFollowing } from "#shared/fleet/kinds/issue-words.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { receiverDocument } from "#shared/fleet/kinds/receiver.ts";
import { sourceDocument } from "#shared/fleet/kinds/source.ts";
import { syncDocument, syncGroupDocument } from "#shared/fleet/kinds/sync-group.ts";
import { unknownFieldText } from "#shared/fleet/kinds/unknown-field.ts";
import { windowDocument } from "#shared/fleet/kinds/window.ts";
import { foreignKindOf } from "#shared/kube/foreign-kinds.ts";

export const documentSchemas = {
  Source: sourceDocument,
  Receiver: receiverDocument,
  ClusterDiscovery: clusterDiscoveryDocument,
  Cluster: clusterDocument,
  ClusterValues: clusterValuesDocument,
  Window: windowDocument,
  SyncGroup: syncGroupDocument,
  Sync: syncDocument,
} as const;

/** The kinds that people write. */
export type WritableKind = keyof typeof documentSchemas;
/** Kinds in the order in which they are written: objects come before those that refer to them. */
export const writableKinds = Object.keys(documentSchemas) as readonly WritableKind[];

export type Document = z.infer<(typeof documentSchemas)[WritableKind]>;

/** A problem of one field: where it is, what was found, and what to do. */
export interface FieldProblem {
  /** `spec.rollout.stages[1].clusters`; empty for the document itself. */
  readonly field: string;
  readonly message: string;
}

/** Deeper than any kind, and as deep as a YAML file may be. */
const maxDepth = 100;

export type ParsedDocument =
  | { readonly ok: true; readonly document: Document }
  | { readonly ok: false; readonly problems: readonly FieldProblem[] };

export function parseDocument(value: unknown): ParsedDocument {
  const head = headProblem(value);
  if (head !== undefined) return { ok: false, problems: [head] };
  const schema = documentSchemas[kindOf(value)];
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, document: parsed.data };
  return {
    ok: false,
    problems: withoutFollowing(parsed.error.issues, value).flatMap((issue) => problemsOf(issue, value)),
  };
}

const jsonSchemas = new Map<WritableKind, unknown>();

/**
 * The JSON Schema (draft 2020-12) of a kind as users write it: fields with a default are optional. It is made once,
 * because that takes a while.
 */
export function jsonSchemaOf(kind: WritableKind): unknown {
  const schema = jsonSchemas.get(kind) ?? z.toJSONSchema(documentSchemas[kind], { io: "input" });
  jsonSchemas.set(kind, schema);
  return schema;
}

function headProblem(value: unknown): FieldProblem | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return {
      field: "",
      message: `is ${excerptOf(value)}; expected an object with apiVersion, kind, metadata and spec`,
    };
  }
  const { apiVersion, kind } = value as { apiVersion?: unknown; kind?: unknown };
  if (apiVersion !== ourApiVersion) {
    return { field: "apiVersion", message: `is ${excerptOf(apiVersion)}; expected "${ourApiVersion}"${whose(value)}` };
  }
  if (typeof kind !== "string" || !Object.hasOwn(documentSchemas, kind)) {
    const known = Object.keys(documentSchemas);
    const meant = typeof kind === "string" ? didYouMean(kind, known) : "";
    return { field: "kind", message: `is ${excerptOf(kind)}; expected one of ${known.join(", ")}${meant}` };
  }
  const deep = findPath(value, ({ depth }) => depth > maxDepth);
  if (deep !== undefined) {
    return { field: fieldText(deep.slice(0, 3)), message: `is nested deeper than ${maxDepth} levels; remove it` };
  }
  // The schemas of maps ignore such a key silently.
  const prototype = findPath(value, ({ step }) => step === "__proto__");
  if (prototype !== undefined) {
    return { field: fieldText(prototype), message: "is a name that no field, label or value can have; remove it" };
  }
  return undefined;
}

/** The purpose of an object of another API that was given as a document of Starling. */
function whose(object: object): string {
  const { apiVersion, kind } = object as { readonly apiVersion?: unknown; readonly kind?: unknown };
  if (typeof apiVersion !== "string" || typeof kind !== "string") return "";
  if (apiVersion.startsWith("starling.dev/") || Object.hasOwn(documentSchemas, kind)) return "";
  const foreign = foreignKindOf(object as Json);
  const what = excerpt(kind);
  return foreign === undefined
    ? `: this ${what} is for clusters; commit it, and name its folder as the path of a template`
    : `: this ${what} is for ${foreign.tool}; for Starling to do what it says, write ${foreign.instead}`;
}

/** Other tools accept this here; omitting it silently would lock Starling out. */
const externalIdFields: ReadonlySet<string> = new Set(["spec.access.role.externalId", "spec.eks.role.externalId"]);
const externalIdRemedy = (kind: string) =>
  `is Starling's to choose, so that no ${kind} takes another one's; remove it, and let the role's trust policy ask for the one that \`starling describe ${kind.toLowerCase()}\` shows`;

/** People who know such gates from other tools expect this field. */
const notAuthorField = /^spec\.rollout\.stages\[\d+\]\.before\[\d+\]\.approval\.notAuthor$/;
const notAuthorRemedy =
  "is nothing that Starling can check: it does not know which role wrote a commit; remove it, and name in `by` only roles that no author has";

/** `endpoint` has this field, and kubeconfigs have it beside the server. */
const overrideAuthority = "spec.eks.endpointOverride.caData";
const overrideAuthorityRemedy =
  "is EKS' to say: with another authority, a Cluster could have the token sent to another server; remove it, and let the address lead to the API server itself, without a proxy that ends TLS";

function remedyOf(field: string, kind: WritableKind): string | undefined {
  if (field === overrideAuthority) return overrideAuthorityRemedy;
  if (externalIdFields.has(field)) return externalIdRemedy(kind);
  return notAuthorField.test(field) ? notAuthorRemedy : undefined;
}

function problemsOf(issue: z.core.$ZodIssue, root: unknown): FieldProblem[] {
  const field = fieldText(issue.path);
  if (issue.code === "unrecognized_keys") {
    const known = keysKnownAt(root, issue.path);
    return issue.keys.map((key) => {
      const unknown = fieldText([...issue.path, key]);
      const message = remedyOf(unknown, kindOf(root)) ?? unknownFieldText(key, unknown, known);
      return { field: unknown, message };
    });
  }
  if (issue.code === "invalid_key") {
    return issue.issues.map(({ message }) => ({ field, message: `has the wrong key: it ${message}` }));
  }
  if (issue.code === "invalid_union") {
    const [meant, ...others] = issue.errors.filter((form) => form.every(isWithinMember));
    if (meant !== undefined && others.length === 0) {
      return meant.flatMap((inner) => problemsOf({ ...inner, path: [...issue.path, ...inner.path] }, root));
    }
  }
  return [{ field, message: issueWords(issue, root) }];
}

/** Whether a value has the members of a form, and only something in one of them is wrong. */
function isWithinMember({ code, path }: z.core.$ZodIssue): boolean {
  return path.length + (code === "unrecognized_keys" ? 1 : 0) > 1;
}

function kindOf(root: unknown): WritableKind {
  return (root as { readonly kind: WritableKind }).kind;
}

/** The keys that the schema has where an unknown one was found: those that a minimal valid object there may have. */
function keysKnownAt(root: unknown, path: readonly PropertyKey[]): readonly string[] {
  let schema = jsonSchemaOf(kindOf(root)) as SchemaNode | undefined;
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
