import { CfnOutput, Fn, Stack, type StackProps } from "aws-cdk-lib";
import type { Construct } from "constructs";
import { type ClusterRoles, sayWhichAccounts } from "#infra/cluster-roles.ts";
import { type Concurrency, sayWhichQuota } from "#infra/concurrency.ts";
import { AlarmReceivers } from "#infra/constructs/alarm-receivers.ts";
import type { ApiPolicies } from "#infra/constructs/api-policies.ts";
import { existingState } from "#infra/existing-state.ts";
import { sayWhatIsNotReached } from "#infra/resolve-zone.ts";
import type { Settings } from "#infra/settings.ts";
import { refuseOtherPlace } from "#infra/stack-place.ts";
import type { StateStack } from "#infra/state-stack.ts";
import { Wiring } from "#infra/wiring.ts";
import { zonesElsewhere } from "#infra/zone-settings.ts";
import { defined } from "#shared/base/defined.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";

export interface ControlStackProps extends StackProps {
  readonly settings: Settings;
  readonly state: StateStack;
  readonly clusterRoles: ClusterRoles;
  readonly concurrency: Concurrency;
}

/** Everything that runs. The stack can be deleted and deployed again, because the state stack keeps the data. */
export class ControlStack extends Stack {
  readonly apiUrl: string;
  readonly webhookUrl: string;
  /** The role that the roles of clusters trust. */
  readonly applyRoleArn: string;
  /** Policies for people: to read, to render and plan, to operate, and to do everything. */
  readonly policies: Pick<ApiPolicies, "viewer" | "reader" | "operator" | "administrator">;

  constructor(scope: Construct, id: string, props: ControlStackProps) {
    super(scope, id, props);
    const { settings, state, clusterRoles, concurrency } = props;
    const { installation, gitAllow, gitCa, alarmTopicArn, alarmEmail, applyRole, discoverRole, oldestRevisionDays } =
      settings;
    const { guard, personalRoles, sourceBuckets, awsSources, eventBus, zones } = settings;
    const { domain: name, domainCertificate: certificateArn } = settings;
    if (settings.home !== undefined)
      refuseOtherPlace(this, { stack: `stack ${this.stackName}`, place: settings.home, setting: "home" });
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
      sourceBuckets,
      awsSources,
      eventBus,
      guard,
      personalRoles,
      zones,
      zonesElsewhere: zonesElsewhere(settings),
      ...(name === undefined || certificateArn === undefined ? {} : { domain: { name, certificateArn } }),
      ...defined({
        gitCa,
        resolveZone: settings.resolveZone,
        applyRoleArn: applyRole,
        discoverRoleArn: discoverRole,
      }),
    });
    const receivers = defined({ topicArn: alarmTopicArn, email: alarmEmail });
    new AlarmReceivers(this, "AlarmReceivers", receivers).hearOf(this);
    sayWhichAccounts(this, clusterRoles);
    sayWhichQuota(this, concurrency);
    sayWhatIsNotReached(this, settings);
    const { apiUrl, webhookUrl, dashboards, caller, discoverRoleArn, policies } = wiring;
    this.apiUrl = apiUrl;
    this.webhookUrl = webhookUrl;
    this.applyRoleArn = caller.roleArn;
    this.policies = policies;
    this.#say("ApiUrl", apiUrl, `URL of the API. To use it: starling context add NAME --stack ${this.stackName}`);
    if (wiring.domainTarget !== undefined) {
      this.#say("DomainTarget", wiring.domainTarget, `Target of the DNS alias record of ${name}`);
    }
    this.#say(
      "WebhookUrl",
      webhookUrl,
      "URL of the webhook for GitHub: content type application/json, event push. Other hosts have another last segment",
    );
    this.#say(
      "WebhookSecretArn",
      state.webhookSecretArn,
      "Secret of the webhook: write the value that the git host signs with",
    );
    this.#say("ApplyRole", caller.roleArn, "Role that the roles of clusters must trust");
    this.#say("ExternalId", caller.externalId, "External id that the trust policies of these roles must require");
    this.#say("ViewerPolicy", policies.viewer.managedPolicyArn, "Policy to read everything but the audit log");
    this.#say("ReaderPolicy", policies.reader.managedPolicyArn, "Policy to read, render and plan");
    this.#say(
      "OperatorPolicy",
      policies.operator.managedPolicyArn,
      "Policy to read and operate, without changing documents",
    );
    this.#say("RobotPolicy", policies.robot.managedPolicyArn, "Policy to answer the checks of stages");
    this.#say("ApproverPolicy", policies.approver.managedPolicyArn, "Policy to read, and approve plans of rollouts");
    this.#say("AdministratorPolicy", policies.administrator.managedPolicyArn, "Policy to do everything");
    this.#say("DiscoverRole", discoverRoleArn, "Role that the roles for discovery must trust");
    if (sourceBuckets.length > 0) {
      this.#say(
        "ResolveRole",
        wiring.resolveRoleArn,
        "Role that the policies of buckets in other accounts must let read",
      );
    }
    for (const { name, outputs, roleArn, addresses } of wiring.zones) {
      this.#say(`Zone${outputs}Role`, roleArn, `Role that the roles of clusters in zone ${name} must trust`);
      if (addresses.length > 0) {
        const said = `Addresses from which zone ${name} asks: add ADDRESS/32 of each to publicAccessCidrs of its clusters`;
        this.#say(`Zone${outputs}Addresses`, Fn.join(",", [...addresses]), said);
      }
    }
    this.#say("FleetDashboard", dashboards.fleet, "CloudWatch dashboard of the fleet");
    this.#say("OperationsDashboard", dashboards.operations, "CloudWatch dashboard of functions, queues and costs");
    this.#say("Version", starlingVersion, "Deployed version of Starling");
  }

  #say(name: string, value: string, description: string): void {
    new CfnOutput(this, name, { value, description });
  }
}
