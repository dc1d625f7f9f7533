import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { type ClusterRoles, sayWhichAccounts } from "#infra/cluster-roles.ts";
import { type Concurrency, sayWhichQuota } from "#infra/concurrency.ts";
import { AlarmReceivers } from "#infra/constructs/alarm-receivers.ts";
import type { ApiPolicies } from "#infra/constructs/api-policies.ts";
import { existingState } from "#infra/existing-state.ts";
import type { Settings } from "#infra/settings.ts";
import type { StateStack } from "#infra/state-stack.ts";
import { Wiring } from "#infra/wiring.ts";
import { defined } from "#shared/base/defined.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";

export interface ControlStackProps extends StackProps {
  readonly settings: Settings;
  readonly state: StateStack;
  readonly clusterRoles: ClusterRoles;
  readonly concurrency: Concurrency;
}

/** Everything that runs. It can be deleted and deployed again: what must survive is in the state stack. */
export class ControlStack extends Stack {
  readonly apiUrl: string;
  readonly webhookUrl: string;
  /** Whom the roles of clusters trust. */
  readonly applyRoleArn: string;
  /** For who may look, who may stop and start, and who may do everything. */
  readonly policies: Pick<ApiPolicies, "viewer" | "reader" | "operator" | "administrator">;

  constructor(scope: Construct, id: string, props: ControlStackProps) {
    super(scope, id, props);
    const { settings, state, clusterRoles, concurrency } = props;
    const { installation, gitAllow, gitCa, alarmTopicArn, alarmEmail, applyRole, discoverRole, oldestRevisionDays } =
      settings;
    const { domain: name, domainCertificate: certificateArn } = settings;
    this.addStackDependency(state, "it reads the outputs of the state stack");
    const wiring = new Wiring(this, "Wiring", {
      installation,
      table: state.table,
      blobs: state.blobs,
      ...existingState(settings),
      webhookSecretArn: state.webhookSecretArn,
      audit: state.audit,
      clusterRoles,
      concurrency,
      oldestRevisionDays,
      gitAllow,
      ...(name === undefined || certificateArn === undefined ? {} : { domain: { name, certificateArn } }),
      ...defined({ gitCa, applyRoleArn: applyRole, discoverRoleArn: discoverRole }),
    });
    const receivers = defined({ topicArn: alarmTopicArn, email: alarmEmail });
    new AlarmReceivers(this, "AlarmReceivers", receivers).hearOf(this);
    sayWhichAccounts(this, clusterRoles);
    sayWhichQuota(this, concurrency);
    const { apiUrl, webhookUrl, dashboards, caller, discoverRoleArn, policies } = wiring;
    this.apiUrl = apiUrl;
    this.webhookUrl = webhookUrl;
    this.applyRoleArn = caller.roleArn;
    this.policies = policies;
    this.#say("ApiUrl", apiUrl, `For people and CI: starling context add NAME --stack ${this.stackName}`);
    if (wiring.domainTarget !== undefined) {
      this.#say("DomainTarget", wiring.domainTarget, `What the DNS record of ${name} is to be an alias of`);
    }
    this.#say("WebhookUrl", webhookUrl, "For the git host: content type application/json, event push");
    this.#say("WebhookSecretArn", state.webhookSecretArn, "Where to write the secret that the git host signs with");
    this.#say("ApplyRole", caller.roleArn, "Whom the roles of clusters trust");
    this.#say("ExternalId", caller.externalId, "With which external id they do");
    this.#say("ViewerPolicy", policies.viewer.managedPolicyArn, "For who may look, and no more");
    this.#say("ReaderPolicy", policies.reader.managedPolicyArn, "For who may look, and render and plan");
    this.#say(
      "OperatorPolicy",
      policies.operator.managedPolicyArn,
      "For who may stop and start, and change no document",
    );
    this.#say("AdministratorPolicy", policies.administrator.managedPolicyArn, "For who may do everything");
    this.#say("DiscoverRole", discoverRoleArn, "Whom the roles trust that clusters are discovered with");
    this.#say("FleetDashboard", dashboards.fleet, "In CloudWatch: what the fleet does, as its rows have it");
    this.#say(
      "OperationsDashboard",
      dashboards.operations,
      "In CloudWatch: what the machinery does, and what it takes",
    );
    this.#say("Version", starlingVersion, "Of Starling, as it was deployed");
  }

  #say(name: string, value: string, description: string): void {
    new CfnOutput(this, name, { value, description });
  }
}
