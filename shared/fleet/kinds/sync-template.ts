import * as z from "zod";
import { boundedList } from "#shared/base/bounded.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { clusterSelectionSchema } from "#shared/fleet/kinds/cluster-selection.ts";
import { durationSchema } from "#shared/fleet/kinds/quantities.ts";
import { specialisationFields } from "#shared/fleet/kinds/specialisation-fields.ts";
import { renderOptions } from "#shared/source/render-options.ts";
import { sourcePath } from "#shared/source/source-path.ts";

const applyFields = {
  /** Delete what left the source. `false` keeps it in the inventory, to be pruned when this turns true again. */
  prune: z.boolean(),
  /** What to do about objects that changed in the cluster: put them back, only report them, or not look. */
  drift: z.enum(["correct", "report", "off"], 'must be "correct", "report" or "off"'),
  /** How often an applied Sync is looked at again. */
  interval: durationSchema({ minSeconds: 10, maxSeconds: 86_400 }),
  /**
   * Where namespaced objects go that name no namespace, as with `kubectl apply -n`; those that name one keep it. Absent:
   * such objects are refused, because nothing falls into `default` unasked.
   */
  defaultNamespace: nameSchema.optional(),
};

export const applyOptions = z.strictObject({
  ...applyFields,
  prune: applyFields.prune.default(true),
  drift: applyFields.drift.default("correct"),
  interval: applyFields.interval.default("10m"),
});
export type ApplyOptions = z.infer<typeof applyOptions>;

const templateFields = {
  /** A Source of the same namespace. */
  source: nameSchema,
  /** The folder inside the Source; may hold `{{ cluster.name }}`, `{{ cluster.labels.KEY }}`, `{{ cluster.values.KEY }}`. */
  path: sourcePath.default("."),
  /** Absent: helm when the folder is a chart, kustomize when it has a kustomization file, else plain. */
  render: renderOptions.optional(),
  ...specialisationFields,
  apply: applyOptions.prefault({}),
};

/** What the template is on some clusters: any field but its name and its Source. */
const templateOverride = z.strictObject({
  clusters: clusterSelectionSchema,
  /** They are not given the template; objects that one of them has of it stay. */
  disabled: z.boolean().optional(),
  path: sourcePath.optional(),
  render: renderOptions.optional(),
  ...specialisationFields,
  apply: z.strictObject(applyFields).partial().optional(),
});
export type TemplateOverride = z.infer<typeof templateOverride>;

export const syncTemplate = z.strictObject({
  name: nameSchema,
  ...templateFields,
  /** All that are for a cluster, in their order: later ones win. */
  overrides: boundedList(templateOverride, 50).optional(),
});
export type SyncTemplate = z.infer<typeof syncTemplate>;

export const syncSpec = z.strictObject({ cluster: nameSchema, ...templateFields });
export type SyncSpec = z.infer<typeof syncSpec>;
