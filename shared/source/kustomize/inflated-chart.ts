import type { HelmRelease } from "#shared/source/helm/helm-release.ts";

/** A chart of the artifact that a kustomization inflates. */
export interface InflatedChart {
  /** Of the artifact. */
  readonly folder: string;
  readonly release: HelmRelease;
  /** Of the artifact, where kustomize finds what it comes to. */
  readonly output: string;
  readonly file: string;
  readonly field: string;
}
