import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { type ClusterRoles, sayWhichAccounts } from "#infra/cluster-roles.ts";
import { type Concurrency, sayWhichQuota } from "#infra/concurrency.ts";
import type { StateStack } from "#infra/state-stack.ts";
import { Wiring } from "#infra/wiring.ts";
import { defined } from "#shared/base/defined.ts";

export interface ControlStackProps extends StackProps {
  readonly installation: string;
  readonly state: StateStack;
  readonly clusterRoles: ClusterRoles;
  readonly concurrency: Concurrency;
  readonly gitAllow?: string;
  readonly gitCa?: string;
}

/** Everything that runs. It can be deleted and deployed again: what must survive is in the state stack. */
export class ControlStack extends Stack {
  constructor(scope: Construct, id: string, props: ControlStackProps) {
    super(scope, id, props);
    const { installation, state, clusterRoles, concurrency, gitAllow, gitCa } = props;
    this.addStackDependency(state, "it imports what the state stack exports");
    const wiring = new Wiring(this, "Wiring", {
      installation,
      table: state.table,
      blobs: state.blobs,
      webhookSecretArn: state.webhookSecretArn,
      audit: state.audit,
      clusterRoles,
      concurrency,
      ...defined({ gitAllow, gitCa }),
    });
    sayWhichAccounts(this, clusterRoles);
    sayWhichQuota(this, concurrency);
    const { roleArn, externalId } = wiring.caller;
    new CfnOutput(this, "ApplyRole", { value: roleArn, description: "Whom the roles of clusters trust" });
    new CfnOutput(this, "ExternalId", { value: externalId, description: "With which external id they do" });
    new CfnOutput(this, "Url", { value: wiring.url, description: "For starling --endpoint and for the webhook" });
  }
}
