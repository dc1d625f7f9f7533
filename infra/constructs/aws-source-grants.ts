import type { Grant } from "#infra/constructs/starling-function.ts";
import { awsGrant } from "#shared/source/aws-place.ts";

/** The actions that a pull needs, for each service of AWS that Sources can be in. */
const actions: Readonly<Record<string, readonly string[]>> = {
  ecr: ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:ListImages"],
  codecommit: ["codecommit:GitPull"],
  codeconnections: ["codeconnections:UseConnection"],
  "codestar-connections": ["codestar-connections:UseConnection"],
};

/** Grants the role of `resolve` what the setting `awsSources` names. @param entries - as in the setting. */
export function awsSourceGrants(entries: readonly string[]): readonly Grant[] {
  const byService = Map.groupBy(new Set(entries.map((entry) => awsGrant(entry).arn)), (arn) => arn.split(":")[2] ?? "");
  const reason = "The operator names the repositories in the setting awsSources, with wildcards if there are many.";
  const grants = [...byService].flatMap(([service, arns]) =>
    (actions[service] ?? []).map((action) => ({ action, arns, reason })),
  );
  const token = {
    action: "ecr:GetAuthorizationToken",
    arns: ["*"],
    reason: "The action has no resource: the token opens only what the role may read.",
  };
  return byService.has("ecr") ? [token, ...grants] : grants;
}
