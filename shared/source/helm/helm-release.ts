import * as z from "zod";

/** Absent files of values that may be. */
const valuesFile = z.strictObject({ path: z.string(), optional: z.boolean().default(false) });

/** What a chart is rendered with, written out: part of what a rendering goes by. */
export const helmRelease = z.strictObject({
  releaseName: z.string(),
  /** `.Release.Namespace`. */
  namespace: z.string(),
  /** As JSON. */
  values: z.string().optional(),
  valuesFrom: z.array(valuesFile).optional(),
  crds: z.enum(["Skip", "CreateReplace"]),
  lookup: z.enum(["Refuse", "Empty"]),
  hooks: z.enum(["Honor", "Omit", "Refuse"]),
  /** `.Capabilities.KubeVersion`, as `1.34`; absent: the renderer's own. */
  kubeVersion: z.string().optional(),
  /** What `.Capabilities.APIVersions` has besides Kubernetes' own. */
  apiVersions: z.array(z.string()).optional(),
});
export type HelmRelease = z.infer<typeof helmRelease>;
