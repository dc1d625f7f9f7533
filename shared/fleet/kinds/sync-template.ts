import * as z from "zod";
import { boundedList } from "#shared/base/bounded.ts";
import { nameSchema } from "#shared/base/name-schema.ts";
import { clusterSelectionSchema } from "#shared/fleet/kinds/cluster-selection.ts";
import { durationSchema } from "#shared/fleet/kinds/quantities.ts";
import { revisionSchema } from "#shared/fleet/kinds/revision-schema.ts";
import { specialisationFields } from "#shared/fleet/kinds/specialisation-fields.ts";
import { renderOptions } from "#shared/source/render-options.ts";
import { sourcePath } from "#shared/source/source-path.ts";

const applyFields = {
  /**
   * Delete objects that left the source. `false` keeps them in the inventory, to be pruned when this becomes true
   * again.
   */
  prune: z.boolean(),
  /** Handling of objects that changed in the cluster: correct them, only report them, or ignore them. */
  drift: z.enum(["correct", "report", "off"], 'must be "correct", "report" or "off"'),
  /** Interval between two checks of an applied Sync. */
  interval: durationSchema({ minSeconds: 10, maxSeconds: 86_400 }),
  /**
   * Namespace for namespaced objects that name none, as with `kubectl apply -n`; objects that name one keep it. When
   * absent, such objects are refused, because nothing goes into `default` by accident.
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
  /** A revision of that Source, at which the template stays. When absent, it follows the Source. */
  revision: revisionSchema.optional(),
  /**
   * The folder inside the Source; may contain `{{ cluster.name }}`, `{{ cluster.labels.KEY }}`, `{{ cluster.values.KEY
   * }}`.
   */
  path: sourcePath.default("."),
  /** When absent: helm for a chart, kustomize for a folder with a kustomization file, otherwise plain. */
  render: renderOptions.optional(),
  ...specialisationFields,
  apply: applyOptions.prefault({}),
};

/** A change of the template on some clusters: any field except its name and its Source. */
const templateOverride = z.strictObject({
  clusters: clusterSelectionSchema,
  /** These clusters do not get the template; objects of it that a cluster already has stay. */
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
  /** All overrides that match a cluster apply in order: later ones win. */
  overrides: boundedList(templateOverride, 50).optional(),
});
export type SyncTemplate = z.infer<typeof syncTemplate>;

export const syncSpec = z.strictObject({ cluster: nameSchema, ...templateFields });
export type SyncSpec = z.infer<typeof syncSpec>;
