/** Accounts with EKS clusters and roles, and a clock that a test advances. */

import { type EksCluster, EksRegister } from "#local/aws/eks/eks-register.ts";
import { type CallFailure, type EksStsCall, type EksStsServer, startEksAndSts } from "#local/aws/eks/eks-sts-server.ts";
import { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { type AccessKey, Principals } from "#local/aws/iam/principals.ts";
import { EksAccess } from "#shared/adapters/aws/eks-access.ts";
import { systemClock } from "#shared/adapters/system.ts";
import type { SleepingClock } from "#shared/base/clock.ts";
import { defined } from "#shared/base/defined.ts";
import { type AwsClients, awsClients } from "#shared/lambda/aws-clients.ts";

export const homeAccount = "111122223333";
export const spokeAccount = "444455556666";
export const applyArn = `arn:aws:sts::${homeAccount}:assumed-role/starling-control-apply/apply`;
export const spokeRole = `arn:aws:iam::${spokeAccount}:role/starling/clusters/apply`;
export const installation = `starling.${homeAccount}.us-east-1`;
/** The external id of Cluster `c1`. */
export const externalId = "starling.111122223333.us-east-1/c1";

/** The ARN of a cluster in Starling's own account. */
export function homeCluster(name: string, region = "eu-west-1"): string {
  return `arn:aws:eks:${region}:${homeAccount}:cluster/${name}`;
}

/** The ARN of a cluster in the other account. */
export function spokeCluster(name: string, region = "eu-west-1"): string {
  return `arn:aws:eks:${region}:${spokeAccount}:cluster/${name}`;
}

export interface EksWorld {
  readonly principals: Principals;
  readonly roles: IamRoles;
  readonly clusters: EksRegister;
  readonly server: EksStsServer;
  /** The access key of Starling's apply function. */
  readonly own: AccessKey;
  readonly aws: AwsClients;
  readonly clock: SleepingClock;
  /** Advances the clock. */
  pass(minutes: number): void;
  /** Sets the failure of calls from now on. */
  fail(failure: ((call: EksStsCall) => CallFailure | undefined) | undefined): void;
  /** The operations so far, in their order, for example `sts AssumeRole`. */
  operations(): readonly string[];
  /** The number of calls of an operation, for example `sts AssumeRole`. */
  count(operation: string): number;
  addCluster(arn: string, more?: Partial<EksCluster>): EksCluster;
  /** The EKS access of a new sandbox of the apply function. */
  access(zone?: string): EksAccess;
  stop(): Promise<void>;
}

export async function startEksWorld(): Promise<EksWorld> {
  let aheadMs = 0;
  let failure: ((call: EksStsCall) => CallFailure | undefined) | undefined;
  const clock = { ...systemClock, now: () => new Date(Date.now() + aheadMs) };
  const own = { accessKeyId: "AKIAAPPLY", secretAccessKey: "apply", principalArn: applyArn };
  const principals = new Principals([own]);
  const roles = new IamRoles();
  roles.put({ arn: spokeRole, trusts: [{ principalArn: applyArn, externalId }] });
  const clusters = new EksRegister();
  const server = await startEksAndSts({ principals, roles, clusters, now: clock.now, fail: (call) => failure?.(call) });
  const nowhere = "http://127.0.0.1:9";
  const aws = awsClients({
    region: "us-east-1",
    credentials: own,
    endpoints: {
      dynamo: nowhere,
      sqs: nowhere,
      s3: nowhere,
      lambda: nowhere,
      secrets: nowhere,
      logs: nowhere,
      alarms: nowhere,
      events: nowhere,
      sts: server.endpoint,
      eks: server.endpoint,
    },
  });
  const operations = () => server.calls().map(({ service, operation }) => `${service} ${operation}`);
  return {
    principals,
    roles,
    clusters,
    server,
    own,
    aws,
    clock,
    pass(minutes) {
      aheadMs += minutes * 60_000;
    },
    fail(next) {
      failure = next;
    },
    operations,
    count: (operation) => operations().filter((each) => each === operation).length,
    addCluster(arn, more = {}) {
      const [, , , region = "", accountId = "", resource = ""] = arn.split(":");
      const cluster: EksCluster = {
        arn,
        name: resource.replace("cluster/", ""),
        region,
        accountId,
        status: "ACTIVE",
        version: "1.36",
        endpoint: "https://127.0.0.1:9",
        caData: "QQ==",
        tags: {},
        createdAt: new Date("2026-01-01T00:00:00Z"),
        accessEntries: [],
        ...more,
      };
      clusters.put(cluster);
      return cluster;
    },
    access(zone) {
      return new EksAccess({ sts: aws.sts, eks: aws.eks, clock, installation: "test", ...defined({ zone }) });
    },
    async stop() {
      aws.sts.destroy();
      await server.stop();
    },
  };
}
