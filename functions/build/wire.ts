import { build } from "#functions/build/build.ts";
import type { BuildEnv } from "#functions/build/env.ts";
import { LastArtifact } from "#functions/build/last-artifact.ts";
import { HttpTransfer } from "#shared/adapters/net/http-transfer.ts";
import { locateHelm } from "#shared/adapters/render/helm-binary.ts";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { type BuildAnswer, buildJob } from "#shared/source/build-job.ts";

export interface BuildWireOptions {
  /** Returns the path of a program, where the path depends on the machine. */
  readonly kubectl?: () => Promise<string>;
}

export function wireBuild(_env: BuildEnv, options: BuildWireOptions = {}): (event: unknown) => Promise<BuildAnswer> {
  const { kubectl = () => locateKubectl("") } = options;
  const transfer = new HttpTransfer();
  const ports = {
    transfer,
    artifact: new LastArtifact(transfer),
    kustomize: new KubectlKustomize({ kubectl }),
    helm: new HelmTemplate({ helm: () => locateHelm("") }),
  };
  return async (event) => build(buildJob.parse(event), ports);
}
