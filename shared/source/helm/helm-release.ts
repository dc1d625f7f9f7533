import * as z from "zod";

const valuesFile = z.strictObject({
  path: z.string(),
  /** Whether it may be absent. */
  optional: z.boolean().default(false),
  /** Of another Source than the chart's: its name, and the digest of the artifact. */
  from: z.strictObject({ source: z.string(), artifactDigest: z.string() }).optional(),
});

/** What a chart is rendered with, written out: part of what a rendering goes by. */
export const helmRelease = z.strictObject({
  releaseName: z.string(),
  /** `.Release.Namespace`. */
  namespace: z.string(),
  /** As JSON. */
  values: z.string().optional(),
  valuesFrom: z.array(valuesFile).optional(),
  crds: z.enum(["Skip", "Create", "CreateReplace"]),
  lookup: z.enum(["Refuse", "Empty"]),
  hooks: z.enum(["Honor", "Omit", "Refuse"]),
  /** `.Capabilities.KubeVersion`, as `1.34`; absent: the renderer's own. */
  kubeVersion: z.string().optional(),
  /** What `.Capabilities.APIVersions` has besides Kubernetes' own. */
  apiVersions: z.array(z.string()).optional(),
});
export type HelmRelease = z.infer<typeof helmRelease>;

/** Digests of the artifacts, besides the chart's own, that files of values are read from: each once. */
export function valueArtifacts({ valuesFrom = [] }: Pick<HelmRelease, "valuesFrom"> = {}): readonly string[] {
  return [...new Set(valuesFrom.flatMap(({ from }) => from?.artifactDigest ?? []))];
}
