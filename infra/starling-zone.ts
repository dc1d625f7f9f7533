import { CfnOutput, Fn, Stack, type StackProps } from "aws-cdk-lib";
import { Construct } from "constructs";
import { clusterRoles, sayWhichAccounts } from "#infra/cluster-roles.ts";
import { type Concurrency, concurrency, sayWhichQuotaOfZone } from "#infra/concurrency.ts";
import { AlarmReceivers } from "#infra/constructs/alarm-receivers.ts";
import { RemoteZone } from "#infra/constructs/remote-zone.ts";
import { ZoneNetwork } from "#infra/constructs/zone-network.ts";
import { readSettings } from "#infra/read-settings.ts";
import type { Settings, StarlingSettings } from "#infra/settings.ts";
import { refuseOtherPlace } from "#infra/stack-place.ts";
import { type HomeSetting, type Place, type ZoneSetting, zonesElsewhere } from "#infra/zone-settings.ts";
import { defined } from "#shared/base/defined.ts";
import { starlingVersion } from "#shared/base/starling-version.ts";

/** The settings of the installation, as `Starling` gets them, and the name of one of their zones. */
export interface StarlingZoneProps extends StarlingSettings {
  /** `name` of a zone of `zones` that has `account` or `region`. */
  readonly zone: string;
}

/**
 * The parts of a zone in another account or region, for a stack of that account and region in a CDK app of your own:
 *
 * ```ts
 * const stack = new Stack(app, "starling-zone-spoke", { env: { account: "444455556666", region: "eu-west-1" } });
 * new StarlingZone(stack, "Zone", { ...settings, zone: "spoke" });
 * ```
 * @throws Error that names each invalid setting, or a zone that is not in the settings or not of this stack's account and region.
 */
export class StarlingZone extends Construct {
  /** The role that the roles of the zone's clusters must trust. */
  readonly roleArn: string;
  /** Addresses from which its requests come; none without `vpc`. */
  readonly addresses: readonly string[];
  readonly dashboard: string;

  constructor(scope: Construct, id: string, { zone, ...given }: StarlingZoneProps) {
    super(scope, id);
    const settings = readSettings(given);
    const remotes = zonesElsewhere(settings);
    const found = remotes.find(({ name }) => name === zone);
    if (found === undefined || settings.home === undefined) {
      const names = remotes.map(({ name }) => name).join(", ") || "none";
      throw new Error(
        `zone of StarlingZone is ${zone}; expected a zone of setting zones with account or region (${names})`,
      );
    }
    refuseOtherPlace(Stack.of(this), { stack: `the stack of zone ${zone}`, place: found, setting: "zones" });
    const made = new ZoneParts(this, "Parts", {
      settings,
      home: settings.home,
      zone: found,
      concurrency: concurrency(settings),
    });
    this.roleArn = made.roleArn;
    this.addresses = made.addresses;
    this.dashboard = made.dashboard;
  }
}

interface ZonePartsProps {
  readonly settings: Settings;
  readonly home: HomeSetting;
  readonly zone: ZoneSetting & Place;
  readonly concurrency: Concurrency;
}

/** A zone with its network and the receivers of its alarm, by checked settings. */
class ZoneParts extends Construct {
  readonly roleArn: string;
  readonly addresses: readonly string[];
  readonly dashboard: string;

  constructor(scope: Construct, id: string, { settings, home, zone, concurrency }: ZonePartsProps) {
    super(scope, id);
    const hasNetwork = zone.vpc !== undefined || zone.subnets !== undefined;
    const placed = hasNetwork ? new ZoneNetwork(this, "Network", zone) : undefined;
    const roles = clusterRoles(settings);
    const made = new RemoteZone(this, "Zone", {
      ...{ zone: zone.name, installation: settings.installation, home, clusterRoles: roles },
      bounds: concurrency.boundsOfZone(zone.name),
      clusterNames: zone.clusterNames ?? [],
      ...defined({
        network: placed?.network,
        addresses: placed?.addresses,
        securityGroups: zone.securityGroups,
      }),
    });
    const receivers = defined({ topicArn: zone.alarmTopicArn, email: settings.alarmEmail });
    new AlarmReceivers(this, "AlarmReceivers", receivers).hearOf(this);
    sayWhichAccounts(this, roles);
    const own = concurrency.elsewhere.find((each) => each.zone === zone.name);
    if (own !== undefined) sayWhichQuotaOfZone(this, own);
    this.roleArn = made.roleArn;
    this.dashboard = made.dashboard;
    this.addresses = placed?.addresses ?? [];
  }
}

/** The stack of one zone in another account or region. */
export class ZoneStack extends Stack {
  constructor(scope: Construct, id: string, props: StackProps & ZonePartsProps) {
    super(scope, id, props);
    const { zone } = props;
    const { roleArn, addresses, dashboard } = new ZoneParts(this, "Zone", props);
    const say = (name: string, value: string, description: string) => new CfnOutput(this, name, { value, description });
    say("Role", roleArn, `Role that the roles of clusters in zone ${zone.name} must trust`);
    if (addresses.length > 0)
      say("Addresses", Fn.join(",", [...addresses]), `Addresses from which zone ${zone.name} asks`);
    say("Dashboard", dashboard, "CloudWatch dashboard of the zone");
    say("Version", starlingVersion, "Deployed version of Starling");
  }
}
