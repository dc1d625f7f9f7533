import type { HelmRelease } from "#shared/source/helm/helm-release.ts";

/** A chart of the artifact that a kustomization inflates. */
export interface InflatedChart {
  /** The chart's folder in the artifact. */
  readonly folder: string;
  readonly release: HelmRelease;
  /** The file of the artifact where kustomize reads the rendered objects. */
  readonly output: string;
  readonly file: string;
  readonly field: string;
}
