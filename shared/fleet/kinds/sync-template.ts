import * as z from "zod";
import { nameSchema } from "#shared/fleet/kinds/metadata.ts";
import { durationSchema } from "#shared/fleet/kinds/quantities.ts";
import { specialisationFields } from "#shared/fleet/kinds/specialisation-fields.ts";
import { renderOptions } from "#shared/source/render-options.ts";
import { sourcePath } from "#shared/source/source-path.ts";

export const applyOptions = z.strictObject({
  /** Delete what left the source. `false` keeps it in the inventory, to be pruned when this turns true again. */
  prune: z.boolean().default(true),
  /** What to do about objects that changed in the cluster: put them back, only report them, or not look. */
  drift: z.enum(["correct", "report", "off"], 'must be "correct", "report" or "off"').default("correct"),
  /** How often an applied Sync is looked at again. */
  interval: durationSchema({ minSeconds: 10, maxSeconds: 86_400 }).default("10m"),
  /**
   * Where namespaced objects go that name no namespace, as with `kubectl apply -n`; those that name one keep it. Absent:
   * such objects are refused, because nothing falls into `default` unasked.
   */
  defaultNamespace: nameSchema.optional(),
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

export const syncTemplate = z.strictObject({ name: nameSchema, ...templateFields });
export type SyncTemplate = z.infer<typeof syncTemplate>;

export const syncSpec = z.strictObject({ cluster: nameSchema, ...templateFields });
export type SyncSpec = z.infer<typeof syncSpec>;
