import { RemovalPolicy } from "aws-cdk-lib";
import type { HttpApi } from "aws-cdk-lib/aws-apigatewayv2";
import { ManagedPolicy, PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import { acknowledgeWildcards } from "#infra/constructs/acknowledge-wildcards.ts";

/**
 * `GET /v1/clusters/*` and the like: a method, and the path of a request. API Gateway names to IAM the path as it was asked
 * for; each pattern means the same of the path of the route, where names are in braces.
 */
type Requests = readonly (readonly [method: string, path: string])[];

/** Everything but the audit log, which says who did what. */
const viewing: Requests = [
  ...["version", "whoami", "installation", "fleet", "events", "logs", "freezes"],
  ...["sources", "syncgroups", "syncs", "rollouts", "namespaces/*"],
  ...["clusters", "clusters/*", "clusterdiscoveries", "clusterdiscoveries/*", "clustervalues", "clustervalues/*"],
].map((path) => ["GET", `/v1/${path}`] as const);

/** Renderings and artifacts as they are, with whatever secrets are in git. */
const reads: Requests = [["POST", "/v1/namespaces/*/contents"]];

/** What stops and starts what is there already; nothing of it changes a document, or deletes an object of a cluster. */
const operates: Requests = [
  ...["suspend", "resume", "reconcile", "refresh"].map((verb) => ["POST", `/v1/namespaces/*/${verb}`] as const),
  ["POST", "/v1/freezes/*"],
  ["DELETE", "/v1/freezes/*"],
  ["POST", "/v1/clusters/*/accept"],
  ["POST", "/v1/clusters/*/recover"],
  ["POST", "/v1/clusters/*/check"],
];

const everything: Requests = [["*", "/v1/*"]];

/**
 * For roles and users of this account: viewer, operator and administrator, each with all of the one before it, and the
 * reader, a viewer who may also see what is in git. What is asked for is in the method and the path,
 * so that the gateway refuses it before a function runs.
 */
export class ApiPolicies extends Construct {
  readonly viewer: ManagedPolicy;
  /** Beside what a viewer or an operator has. */
  readonly reader: ManagedPolicy;
  readonly operator: ManagedPolicy;
  readonly administrator: ManagedPolicy;

  constructor(scope: Construct, id: string, http: HttpApi) {
    super(scope, id);
    this.viewer = this.#policy("Viewer", {
      http,
      requests: viewing,
      description: "May look at everything but the audit log",
    });
    this.reader = this.#policy("Reader", {
      http,
      requests: [...viewing, ...reads],
      description: "May look as a viewer, and read renderings and artifacts as they are: for render and plan",
    });
    this.operator = this.#policy("Operator", {
      http,
      requests: [...viewing, ...operates],
      description:
        "May look as a viewer, and suspend, resume, reconcile, refresh, freeze, accept, recover and check clusters",
    });
    this.administrator = this.#policy("Administrator", {
      http,
      requests: everything,
      description: "May apply and delete documents, prune, read the audit log, and all else",
    });
  }

  /** Whoever may look may look in CloudWatch, too, which invokes the function with the rights of who looks. */
  allowReading(dashboard: IFunction): void {
    for (const policy of [this.viewer, this.reader, this.operator, this.administrator]) {
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
    // IAM deletes no policy that somebody still has: the deletion of the stack would stop at it.
    policy.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
    acknowledgeWildcards(
      policy,
      statement,
      "Objects come and go: a policy names what is done, and to which kind of path.",
    );
    return policy;
  }
}
