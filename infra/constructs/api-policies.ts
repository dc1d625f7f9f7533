import { RemovalPolicy } from "aws-cdk-lib";
import type { HttpApi } from "aws-cdk-lib/aws-apigatewayv2";
import { ManagedPolicy, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { acknowledgeWildcards } from "#infra/constructs/acknowledge-wildcards.ts";
import { pathChoices } from "#shared/fleet/api/api-routes.ts";

/**
 * A method and the path of a request, such as `GET /v1/clusters/*`. API Gateway gives IAM the path of the request. Each pattern
 * also fits the path of the route, which has names in braces.
 */
type Requests = readonly (readonly [method: string, path: string])[];

/** Reads of everything but the audit log. IAM limits the length of a policy: `zones*` is the list and the checks. */
const viewing: Requests = [
  ...["version", "whoami", "installation", "fleet", "events", "logs", "freezes", "zones*"],
  ...["sources", "receivers", "syncgroups", "syncs", "rollouts", "namespaces/*"],
  ...["clusters", "clusters/*", "clusterdiscoveries", "clusterdiscoveries/*", "clustervalues", "clustervalues/*"],
  ...["windows", "windows/*", "sources/*/artifacts"],
].map((path) => ["GET", `/v1/${path}`] as const);

/** Reads of whole renderings and artifacts, with the secrets that git has. Viewers read everything below `namespaces`. */
const reads: Requests = [
  ["POST", "/v1/namespaces/*/contents"],
  ["GET", "/v1/sources/*/artifacts/*"],
];

/** Operations that change no document and delete no object of a cluster. */
const operates: Requests = [
  ...pathChoices.verb.map((verb) => ["POST", `/v1/namespaces/*/${verb}`] as const),
  ...pathChoices.rolloutVerb
    .filter((verb) => verb !== "approve" && verb !== "exempt" && verb !== "rollback-deleting")
    .map((verb) => ["POST", `/v1/namespaces/*/${verb}`] as const),
  ["POST", "/v1/namespaces/*/trigger"],
  ["POST", "/v1/freezes/*"],
  ["DELETE", "/v1/freezes/*"],
  ["POST", "/v1/clusters/*/accept"],
  ["POST", "/v1/clusters/*/recover"],
  ["POST", "/v1/clusters/*/check"],
  ["POST", "/v1/zones/*/check"],
  ["POST", "/v1/clusters/*/cordon"],
  ["POST", "/v1/clusters/*/uncordon"],
];

/** The group says which of the approvers may approve in which of its stages. */
const approves: Requests = [["POST", "/v1/namespaces/*/approve"]];

/** A program that answers checks reads the objects of namespaces, and nothing of clusters, logs or people's views. */
const checks: Requests = [["GET", "/v1/whoami"], ["GET", "/v1/namespaces/*"], ...approves];

const everything: Requests = [["*", "/v1/*"]];

/**
 * Policies for roles and users of this account: viewer, operator and administrator, each with all rights of the one before, and
 * reader, a viewer who may also read the content of git. The method and the path of a request decide, so that the gateway refuses
 * a request before a function runs.
 */
export class ApiPolicies extends Construct {
  readonly viewer: ManagedPolicy;
  /** For people who also have the policy of a viewer or an operator. */
  readonly reader: ManagedPolicy;
  readonly operator: ManagedPolicy;
  /** An operator is no approver: a role may have both policies. */
  readonly approver: ManagedPolicy;
  /** For programs that answer the checks of stages. */
  readonly robot: ManagedPolicy;
  readonly administrator: ManagedPolicy;

  constructor(scope: Construct, id: string, http: HttpApi) {
    super(scope, id);
    this.viewer = this.#policy("Viewer", {
      http,
      requests: viewing,
      description: "Read everything but the audit log",
    });
    this.reader = this.#policy("Reader", {
      http,
      requests: [...viewing, ...reads],
      description: "Read as a viewer, and read whole renderings and artifacts, for render and plan",
    });
    this.operator = this.#policy("Operator", {
      http,
      requests: [...viewing, ...operates],
      description:
        "Read as a viewer; suspend, resume, reconcile, refresh, hold, release, promote, retry, skip, reject, rollback and freeze; cordon, accept, recover and check clusters; check zones",
    });
    this.approver = this.#policy("Approver", {
      http,
      requests: [...viewing, ...approves],
      description: "Read as a viewer, and approve the plans of rollouts",
    });
    this.robot = this.#policy("Robot", {
      http,
      requests: checks,
      description: "Read the objects of namespaces, and answer the checks of stages",
    });
    this.administrator = this.#policy("Administrator", {
      http,
      requests: everything,
      description:
        "Do everything: apply and delete documents, prune, delete what a rollback would leave, approve what guards withhold, exempt groups from windows, read the audit log, and operate",
    });
  }

  /** Lets all of them see the dashboard in CloudWatch, which invokes the function with the rights of the person. */
  allowReading(dashboard: IFunction): void {
    for (const policy of [this.viewer, this.reader, this.operator, this.approver, this.administrator]) {
      policy.addStatements(
        new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [dashboard.functionArn] }),
      );
    }
  }

  #policy(
    id: string,
    {
      http,
      requests,
      description,
    }: { readonly http: HttpApi; readonly requests: Requests; readonly description: string },
  ): ManagedPolicy {
    const resources = requests.map(([method, path]) => http.arnForExecuteApi(method, path, "$default"));
    const statement = new PolicyStatement({ actions: ["execute-api:Invoke"], resources });
    const policy = new ManagedPolicy(this, id, { description: `Starling: ${description}`, statements: [statement] });
    // IAM does not delete a policy that is still attached, so that the deletion of the stack would fail.
    policy.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
    acknowledgeWildcards(
      policy,
      statement,
      "Objects are created and deleted later, so a policy can name only operations and kinds of paths.",
    );
    return policy;
  }
}
