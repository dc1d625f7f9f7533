import { type AccessEntry, type EksCluster, EksRefusal, type EksRegister } from "#local/aws/eks/eks-register.ts";

export interface EksRequest {
  readonly method: string;
  /** The percent-encoded path, without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: string;
  /** The account of the signature. The operation works on this account and region only. */
  readonly accountId: string;
  readonly region: string;
  readonly partition: string;
}

export interface EksOperation {
  readonly name: string;
  /** Returns the body of the answer. @throws EksRefusal */
  perform(register: EksRegister): object;
}

const largestPage = 100;

/** The operation of a request of the rest-json protocol, if it is known. */
export function eksOperation(request: EksRequest): EksOperation | undefined {
  const [, root, ...parts] = request.path.split("/").map(decodeURIComponent);
  if (root !== "clusters") return undefined;
  const [cluster = "", collection, principalArn = "", inner] = parts;
  const shape = `${request.method} ${parts.length}`;
  const arn = `arn:${request.partition}:eks:${request.region}:${request.accountId}:cluster/${cluster}`;
  if (shape === "GET 0") return { name: "ListClusters", perform: (register) => listClusters(request, register) };
  if (shape === "GET 1") {
    return { name: "DescribeCluster", perform: (register) => ({ cluster: described(register.get(arn)) }) };
  }
  if (collection !== "access-entries") return undefined;
  if (shape === "GET 2") {
    return {
      name: "ListAccessEntries",
      perform: (register) => ({
        accessEntries: register.get(arn).accessEntries.map((entry) => entry.principalArn),
      }),
    };
  }
  if (shape === "POST 2") {
    return { name: "CreateAccessEntry", perform: (register) => createAccessEntry(arn, request, register) };
  }
  if (shape === "GET 3") {
    return {
      name: "DescribeAccessEntry",
      perform: (register) => shown(arn, register.accessEntry(arn, principalArn)),
    };
  }
  if (shape === "POST 3") {
    return {
      name: "UpdateAccessEntry",
      perform(register) {
        const { kubernetesGroups } = JSON.parse(request.body) as Partial<AccessEntryRequest>;
        if (kubernetesGroups !== undefined) register.setGroups(arn, principalArn, kubernetesGroups);
        return shown(arn, register.accessEntry(arn, principalArn));
      },
    };
  }
  if (shape === "POST 4" && inner === "access-policies") {
    return {
      name: "AssociateAccessPolicy",
      perform(register) {
        const { policyArn } = JSON.parse(request.body) as { readonly policyArn: string };
        register.associatePolicy(arn, principalArn, policyArn);
        return {
          clusterName: cluster,
          principalArn,
          associatedAccessPolicy: { policyArn, accessScope: { type: "cluster" } },
        };
      },
    };
  }
  return undefined;
}

function listClusters({ query, accountId, region }: EksRequest, register: EksRegister): object {
  const size = Number(query.get("maxResults") ?? largestPage);
  if (!Number.isInteger(size) || size < 1 || size > largestPage) {
    throw new EksRefusal("InvalidParameterException", `maxResults needs to be 1-${largestPage}.`);
  }
  const names = register.list({ accountId, region }).map(({ name }) => name);
  const token = query.get("nextToken");
  const after = token === null ? "" : Buffer.from(token, "base64url").toString();
  const rest = names.filter((name) => name > after);
  const page = rest.slice(0, size);
  const last = page.at(-1);
  const more = last !== undefined && rest.length > size;
  return { clusters: page, ...(more ? { nextToken: Buffer.from(last).toString("base64url") } : {}) };
}

function described(cluster: EksCluster): object {
  const { publicAccess: isPublic = true, publicCidrs = ["0.0.0.0/0"], vpcId = "vpc-00000000" } = cluster;
  const made = cluster.status !== "CREATING" && cluster.status !== "PENDING";
  return {
    name: cluster.name,
    arn: cluster.arn,
    createdAt: cluster.createdAt.getTime() / 1000,
    version: cluster.version,
    status: cluster.status,
    ...(made ? { endpoint: cluster.endpoint, certificateAuthority: { data: cluster.caData } } : {}),
    accessConfig: { authenticationMode: cluster.authenticationMode ?? "API" },
    resourcesVpcConfig: {
      vpcId,
      endpointPublicAccess: isPublic,
      endpointPrivateAccess: !isPublic,
      publicAccessCidrs: isPublic ? publicCidrs : [],
    },
    tags: cluster.tags,
  };
}

interface AccessEntryRequest {
  readonly principalArn: string;
  readonly kubernetesGroups?: readonly string[];
  readonly username?: string;
}

function createAccessEntry(arn: string, { body }: EksRequest, register: EksRegister): object {
  const { principalArn, kubernetesGroups = [], username } = JSON.parse(body) as AccessEntryRequest;
  const entry = { principalArn, kubernetesGroups, username: username ?? usernameOf(principalArn), policies: [] };
  register.addAccessEntry(arn, entry);
  return shown(arn, entry);
}

function shown(arn: string, { policies: _policies, ...entry }: AccessEntry): object {
  return { accessEntry: { clusterName: arn.split("/").at(-1), ...entry, type: "STANDARD" } };
}

/** The user name that EKS gives to an access entry without one. */
function usernameOf(principalArn: string): string {
  const role = /^arn:([^:]+):iam::(\d+):role\/(?:.*\/)?([^/]+)$/.exec(principalArn);
  if (role === null) return principalArn;
  const [, partition, account, name] = role;
  return `arn:${partition}:sts::${account}:assumed-role/${name}/{{SessionName}}`;
}
