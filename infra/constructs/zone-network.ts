import { Fn, NestedStack, Validations } from "aws-cdk-lib";
import {
  CfnEIP,
  CfnSecurityGroup,
  GatewayVpcEndpointAwsService,
  IpAddresses,
  NatProvider,
  SubnetType,
  Vpc,
} from "aws-cdk-lib/aws-ec2";
import { Construct } from "constructs";
import type { Network } from "#infra/constructs/starling-function.ts";
import type { ZoneSetting } from "#infra/zone-settings.ts";

/** Its availability zones are not looked up, so that a stack with an account and a region needs no context. */
class NetworkStack extends NestedStack {
  override get availabilityZones(): string[] {
    return [0, 1].map((index) => Fn.select(index, Fn.getAzs()));
  }
}

/** The network of a zone: existing subnets, or a new VPC whose requests leave by fixed addresses. */
export class ZoneNetwork extends Construct {
  readonly network: Network;
  /** Public IPv4 addresses from which requests come. Empty for existing subnets, whose addresses are unknown here. */
  readonly addresses: readonly string[];

  constructor(scope: Construct, id: string, { vpc: created, subnets = [], securityGroups = [] }: ZoneSetting) {
    super(scope, id);
    if (created === undefined) {
      this.network = { subnetIds: subnets, securityGroupIds: securityGroups };
      this.addresses = [];
      return;
    }
    const { cidr, natGateways } = created;
    // With another range, everything is new. CloudFormation makes the new network before it deletes the old one, which still has
    // its internet gateway and its addresses, and neither can be in two networks.
    const place = new Construct(this, cidr.replaceAll(/[./]/g, "-"));
    // A stack has at most 500 resources, and a network has about 24.
    const stack = new NetworkStack(place, "Stack", { description: "Starling: the network of a zone" });
    const addresses = Array.from({ length: natGateways }, (_, index) => new CfnEIP(place, `Address${index + 1}`));
    const vpc = new Vpc(stack, "Vpc", {
      ipAddresses: IpAddresses.cidr(cidr),
      maxAzs: 2,
      // It would add a function of the CDK to the stack. Nothing uses the default group.
      restrictDefaultSecurityGroup: false,
      natGateways,
      natGatewayProvider: NatProvider.gateway({
        eipAllocationIds: addresses.map(({ attrAllocationId }) => attrAllocationId),
      }),
      subnetConfiguration: [
        { name: "Public", subnetType: SubnetType.PUBLIC, cidrMask: 28, mapPublicIpOnLaunch: false },
        { name: "Private", subnetType: SubnetType.PRIVATE_WITH_EGRESS, cidrMask: 26 },
      ],
      // They cost nothing, and keep the bytes of rows and renderings away from the NAT gateway, which charges for them.
      gatewayEndpoints: {
        Table: { service: GatewayVpcEndpointAwsService.DYNAMODB },
        Blobs: { service: GatewayVpcEndpointAwsService.S3 },
      },
    });
    Validations.of(vpc).acknowledge({
      id: "AwsSolutions-VPC7",
      reason:
        "Only Starling's workers are in this VPC, and they log each cluster that they reach. Flow logs cost more than the NAT gateway's hour.",
    });
    const group = new CfnSecurityGroup(stack, "Workers", {
      vpcId: vpc.vpcId,
      groupDescription: "Workers of Starling: nothing comes in, and requests go out to API servers of any port",
      securityGroupEgress: [{ ipProtocol: "tcp", fromPort: 1, toPort: 65535, cidrIp: "0.0.0.0/0" }],
    });
    this.network = {
      subnetIds: vpc.selectSubnets({ subnetType: SubnetType.PRIVATE_WITH_EGRESS }).subnetIds,
      securityGroupIds: [group.attrGroupId],
    };
    this.addresses = addresses.map(({ ref }) => ref);
  }
}
