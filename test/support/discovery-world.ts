/**
 * Accounts with EKS clusters, a table, and the function `discover`, which uses HTTP for everything except the table.
 */
import { applyDocuments } from "#functions/api/write/apply-documents.ts";
import { discover } from "#functions/discover/discover.ts";
import type { DiscoverPorts } from "#functions/discover/discover-ports.ts";
import { type EksCluster, EksRegister } from "#local/aws/eks/eks-register.ts";
import { type CallFailure, type EksStsCall, startEksAndSts } from "#local/aws/eks/eks-sts-server.ts";
import type { LocalOrganization } from "#local/aws/eks/listing-operations.ts";
import { ParameterStore } from "#local/aws/eks/parameter-operations.ts";
import { IamRoles } from "#local/aws/iam/iam-roles.ts";
import { Principals } from "#local/aws/iam/principals.ts";
import { EksInventory } from "#shared/adapters/aws/eks-inventory.ts";
import { randomIds } from "#shared/adapters/system.ts";
import { allItems } from "#shared/base/all-pages.ts";
import { parseZoneNetworks } from "#shared/fleet/api/zone-object.ts";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import type { DiscoveryRow, FoundRow } from "#shared/fleet/rows/discovery-rows.ts";
import { keys, ranges } from "#shared/fleet/rows/keys.ts";
import type { ClusterRow, FleetRow } from "#shared/fleet/rows/object-rows.ts";
import { awsClients } from "#shared/lambda/aws-clients.ts";
import type { MessageSender, Table } from "#shared/ports.ts";
import { healthyInstallation } from "#test/support/healthy-installation.ts";
import { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import { MemorySender } from "#test/support/memory-sender.ts";
import { MemoryTable } from "#test/support/memory-table.ts";

const homeAccount = "111122223333";
const installation = `starling.${homeAccount}.us-east-1`;
const discoverArn = `arn:aws:sts::${homeAccount}:assumed-role/starling-control-discover/discover`;
const roleName = "starling/discovery/scan";
const start = Date.parse("2026-11-23T06:00:00Z");

export interface DiscoveryWorld<T extends Table = MemoryTable> {
  readonly table: T;
  readonly sender: MemorySender;
  readonly clusters: EksRegister;
  readonly parameters: ParameterStore;
  readonly now: () => Date;
  pass(hours: number): void;
  /** Lets Starling list the clusters of an account, for these ClusterDiscoveries. */
  trust(account: string, ...discoveries: readonly string[]): void;
  /** Removes the permission to assume the role in this account. */
  distrust(account: string): void;
  add(arn: string, tags?: Readonly<Record<string, string>>, more?: Partial<EksCluster>): void;
  organize(organization: LocalOrganization): void;
  fail(failure: ((call: EksStsCall) => CallFailure | undefined) | undefined): void;
  apply(...documents: readonly object[]): Promise<void>;
  /** Invokes the function, in a new sandbox unless `warm` is set. */
  scan(
    name: string,
    options?: {
      readonly table?: Table;
      readonly sender?: MessageSender;
      readonly sandbox?: DiscoverPorts["inventory"];
      readonly leftMs?: () => number;
      /** The zones of VPCs by the setting `zones`. */
      readonly zonesOfVpcs?: DiscoverPorts["zonesOfVpcs"];
      /** The names of clusters that zones serve. */
      readonly served?: DiscoverPorts["served"];
    },
  ): Promise<void>;
  sandbox(): EksInventory;
  row(name: string): Promise<DiscoveryRow>;
  cluster(name: string): Promise<ClusterRow | undefined>;
  fleet(): Promise<readonly FleetRow[]>;
  found(): Promise<readonly FoundRow[]>;
  /** The AWS operations since the last call, for example `eks DescribeCluster`. */
  operations(): readonly string[];
  stop(): Promise<void>;
}

/** A ClusterDiscovery with the given fields. */
export function discoveryDocument(name: string, eks: object, spec: object = {}): object {
  return {
    apiVersion: ourApiVersion,
    kind: "ClusterDiscovery",
    metadata: { name },
    spec: { eks: { role: { name: roleName }, regions: ["eu-west-1"], ...eks }, ...spec },
  };
}

export function arnOf(name: string, account: string, region = "eu-west-1"): string {
  return `arn:aws:eks:${region}:${account}:cluster/${name}`;
}

export function startDiscoveryWorld(): Promise<DiscoveryWorld> {
  return startDiscoveryWorldOn(new MemoryTable({ pageItems: 1000 }));
}

export async function startDiscoveryWorldOn<T extends Table>(table: T): Promise<DiscoveryWorld<T>> {
  let nowMs = start;
  let failure: ((call: EksStsCall) => CallFailure | undefined) | undefined;
  let organization: LocalOrganization | undefined;
  let reported = 0;
  const clock = { now: () => new Date(nowMs) };
  const own = { accessKeyId: "AKIADISCOVER", secretAccessKey: "discover", principalArn: discoverArn };
  const principals = new Principals([own]);
  const roles = new IamRoles();
  const clusters = new EksRegister();
  const parameters = new ParameterStore();
  const parts = { principals, roles, clusters, parameters, now: clock.now, organization: () => organization };
  const server = await startEksAndSts({ ...parts, fail: (call) => failure?.(call) });
  const { endpoint } = server;
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
      sts: endpoint,
      eks: endpoint,
      logs: nowhere,
      alarms: nowhere,
      events: nowhere,
    },
  });
  const sender = new MemorySender();
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const sandbox = () => new EksInventory({ ...aws, clock, installation, region: "us-east-1" });
  const arnOfRole = (account: string) => `arn:aws:iam::${account}:role/${roleName}`;
  return {
    table,
    sender,
    clusters,
    parameters,
    now: clock.now,
    pass(hours) {
      nowMs += hours * 3_600_000;
    },
    trust(account, ...discoveries) {
      const trusts = discoveries.map((name) => ({
        principalArn: discoverArn,
        externalId: `starling.111122223333.us-east-1/discovery/${name}`,
      }));
      roles.put({ arn: arnOfRole(account), trusts });
    },
    distrust(account) {
      roles.put({ arn: arnOfRole(account), trusts: [] });
    },
    add(arn, tags = {}, more = {}) {
      const [, , , region = "", accountId = "", resource = ""] = arn.split(":");
      clusters.put({
        arn,
        name: resource.replace("cluster/", ""),
        region,
        accountId,
        status: "ACTIVE",
        version: "1.36",
        endpoint: "https://127.0.0.1:9",
        caData: "QQ==",
        tags,
        createdAt: new Date("2026-01-01T00:00:00Z"),
        accessEntries: [],
        ...more,
      });
    },
    organize(next) {
      organization = next;
    },
    fail(next) {
      failure = next;
    },
    async apply(...documents) {
      const ports = {
        ...{ table, sender, clock, log, installation, ids: randomIds, blobs: new MemoryBlobStore() },
        ...healthyInstallation,
        zoneNetworks: parseZoneNetworks("spoke=subnets,fixed=vpc"),
      };
      const caller = { principal: "arn:aws:iam::111122223333:user/test" };
      await applyDocuments(ports, { documents, mode: "write", confirmed: "confirmed", caller });
    },
    async scan(name, { leftMs = () => 300_000, ...options } = {}) {
      const inventory = options.sandbox ?? sandbox();
      const ports = {
        ...{ table, sender, zonesOfVpcs: new Map<string, string>(), served: new Map<string, string[]>() },
        ...options,
        ...{ inventory, clock, ids: randomIds, log, installation },
      };
      await discover(name, ports, { getRemainingTimeInMillis: leftMs });
    },
    sandbox,
    async row(name) {
      const row = await table.get(keys.discovery(name));
      if (row === undefined) throw new Error(`there is no ClusterDiscovery ${name}`);
      return row;
    },
    cluster: (name) => table.get(keys.cluster(name)),
    async fleet() {
      const rows = await Array.fromAsync(allItems((page) => table.query({ ...ranges.fleet, ...page })));
      return rows.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    found: () => Array.fromAsync(allItems((page) => table.query({ ...ranges.found, ...page }))),
    operations() {
      const all = server.calls().map(({ service, operation }) => `${service} ${operation}`);
      const since = all.slice(reported);
      reported = all.length;
      return since;
    },
    stop: () => server.stop(),
  };
}
