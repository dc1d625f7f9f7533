/** The values of a template's fields on a cluster: pure, from the template and the cluster's values. */
import { defined } from "#shared/base/defined.ts";
import { digestOf } from "#shared/base/digest.ts";
import { excerpt } from "#shared/base/excerpt.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { renderText, type TemplateCluster } from "#shared/base/path-template.ts";
import type { SpecialisationFields } from "#shared/fleet/kinds/specialisation-fields.ts";
import type { BoundInputs } from "#shared/fleet/rows/rollout-rows.ts";
import type { Edits } from "#shared/source/edits.ts";
import type { Specialisation } from "#shared/source/specialisation.ts";

/** Exactly these fields of a larger object. */
export function specialisationFieldsOf(template: SpecialisationFields): SpecialisationFields {
  const { parameters, substitute, targetNamespace } = template;
  return defined({ parameters, substitute, targetNamespace, ...pickEdits(template) });
}

function pickEdits(template: SpecialisationFields): Edits {
  const { components, patches, namePrefix, nameSuffix, images, commonMetadata, createNamespace } = template;
  return defined({ components, patches, namePrefix, nameSuffix, images, commonMetadata, createNamespace });
}

/** Unused fields have no values: they make no other rendering, and lack nothing. */
export function bindFields(
  { parameters = {}, substitute = false, targetNamespace }: SpecialisationFields,
  cluster: TemplateCluster,
): Pick<BoundInputs, "parameters" | "namespace"> | { readonly problem: string } {
  const bound: [string, string][] = [];
  for (const [name, text] of substitute === false ? [] : Object.entries(parameters)) {
    if (!text.includes("{{")) continue;
    const rendered = renderText(text, { ...cluster, params: {} });
    if (!rendered.ok) return { problem: `parameters.${name}: ${rendered.message}` };
    bound.push([name, rendered.text]);
  }
  const used = bound.length === 0 ? {} : { parameters: Object.fromEntries(bound) };
  if (targetNamespace?.includes("{{") !== true) return used;
  const namespace = renderText(targetNamespace, cluster);
  if (!namespace.ok) return { problem: `targetNamespace: ${namespace.message}` };
  if (!nameSchema.safeParse(namespace.text).success) {
    const problem = `targetNamespace is not a valid name for cluster ${cluster.name}: "${excerpt(namespace.text)}"; use 1 to 63 characters of a-z, 0-9 and -`;
    return { problem };
  }
  return { ...used, namespace: namespace.text };
}

/** The fields as a rendering has them, with all defaults. Undefined when the objects stay as they are. */
export function specialisationOf(template: SpecialisationFields, bound: BoundInputs = {}): Specialisation | undefined {
  const { parameters, substitute = false, targetNamespace } = template;
  const specialise = defined({
    edits: editsOf(template),
    namespace: bound.namespace ?? targetNamespace,
    variables: substitute === false ? undefined : { ...parameters, ...bound.parameters },
    mode: typeof substitute === "object" ? substitute.mode : undefined,
  });
  return Object.keys(specialise).length === 0 ? undefined : specialise;
}

const known = new WeakMap<SpecialisationFields, Edits>();

/** The same object for the same template: its digest is computed once for all clusters. */
function editsOf(template: SpecialisationFields): Edits | undefined {
  const edits = known.get(template) ?? pickEdits(template);
  known.set(template, edits);
  return Object.keys(edits).length === 0 ? undefined : edits;
}

const digests = new WeakMap<Edits, string>();

export function editsDigest(edits: Edits): string {
  const digest = digests.get(edits) ?? digestOf(edits);
  digests.set(edits, digest);
  return digest;
}
