import { RemovalPolicy, Stack, Validations } from "aws-cdk-lib";
import { AccessLogFormat } from "aws-cdk-lib/aws-apigateway";
import {
  ApiMapping,
  CfnStage,
  DomainName,
  HttpApi,
  HttpMethod,
  HttpNoneAuthorizer,
  HttpStage,
  LogGroupLogDestination,
  SecurityPolicy,
} from "aws-cdk-lib/aws-apigatewayv2";
import { HttpIamAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { ApiPolicies } from "#infra/constructs/api-policies.ts";
import { gatewayRouteKeys } from "#shared/fleet/api/api-routes.ts";

/** One route for all git hosts, so that they share one throttle. The function refuses a host that it does not know. */
const webhookPath = "/hook/{host}";
/** Another throttle than that of the hosts: a busy sender of one Receiver keeps no push of an installation-wide webhook out. */
const receiverPath = "/hook/r/{receiver}";

/**
 * Fields of an HTTP API; variables of a REST API, such as resourcePath, would log a dash. The path is foreign text. It comes first,
 * so that nothing in it can overwrite another field. The lines of `api` have the caller too, by requestId.
 */
const accessLogFields = {
  path: "$context.path",
  route: "$context.routeKey",
  method: "$context.httpMethod",
  caller: "$context.identity.userArn",
  ip: "$context.identity.sourceIp",
  status: "$context.status",
  error: "$context.error.responseType",
  authorizerError: "$context.authorizer.error",
  integrationError: "$context.integrationErrorMessage",
  bytes: "$context.responseLength",
  milliseconds: "$context.responseLatency",
  time: "$context.requestTime",
  requestId: "$context.requestId",
} as const;

export interface ApiEntryProps {
  /** Requests must be signed with SigV4 by a principal that may `execute-api:Invoke`. */
  readonly api: IFunction;
  /** Open to the internet; the function itself verifies the sender of an event. */
  readonly webhook: IFunction;
  /** An address that does not change when the stack is created again. */
  readonly domain?: { readonly name: string; readonly certificateArn: string };
}

/** The API and the webhook, with separate throttles and an access log without bodies and headers. */
export class ApiEntry extends Construct {
  readonly apiUrl: string;
  readonly webhookUrl: string;
  /** Target of the DNS alias record of the domain. */
  readonly domainTarget?: string;
  /** Policies for people and their programs. */
  readonly policies: ApiPolicies;

  constructor(scope: Construct, id: string, props: ApiEntryProps) {
    super(scope, id);
    const http = new HttpApi(this, "Http", { createDefaultStage: false, description: "Starling" });
    // One permission for all of its routes, because the policy of a function is limited to 20 KB.
    const toApi = new HttpLambdaIntegration("Api", props.api, { scopePermissionToRoute: false });
    const signed = new HttpIamAuthorizer();
    for (const key of gatewayRouteKeys()) {
      const [method, path = ""] = key.split(" ");
      http.addRoutes({ path, methods: [method as HttpMethod], integration: toApi, authorizer: signed });
    }
    const toWebhook = new HttpLambdaIntegration("Webhook", props.webhook);
    const open = [webhookPath, receiverPath].flatMap((path) =>
      http.addRoutes({
        path,
        methods: [HttpMethod.POST],
        integration: toWebhook,
        authorizer: new HttpNoneAuthorizer(),
      }),
    );
    for (const route of open) {
      Validations.of(route).acknowledge({
        id: "AwsSolutions-APIG4",
        reason:
          "A git host cannot sign for IAM. The function verifies the sender over the raw body before it parses the body.",
      });
    }

    const logs = new LogGroup(this, "AccessLog", {
      // CloudWatch Logs has one resource policy of 5,120 characters for all groups that services write to. Groups below this path
      // need no statement in it.
      logGroupName: `/aws/vendedlogs/apis/${Stack.of(this).stackName}/access`,
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    const stage = new HttpStage(this, "Stage", {
      httpApi: http,
      stageName: "$default",
      autoDeploy: true,
      throttle: { rateLimit: 50, burstLimit: 100 },
      accessLogSettings: {
        destination: new LogGroupLogDestination(logs),
        format: AccessLogFormat.custom(JSON.stringify(accessLogFields)),
      },
    });
    const { defaultChild } = stage.node;
    if (!(defaultChild instanceof CfnStage)) throw new Error("an HttpStage holds no CfnStage");
    // Anybody can call these routes, so that they get less than the routes of people and CI.
    defaultChild.routeSettings = Object.fromEntries(
      [webhookPath, receiverPath].map((path) => [
        `${HttpMethod.POST} ${path}`,
        { ThrottlingRateLimit: 10, ThrottlingBurstLimit: 40 },
      ]),
    );
    defaultChild.node.addDependency(http);
    this.policies = new ApiPolicies(this, "Policies", http);
    this.apiUrl = props.domain === undefined ? http.apiEndpoint : `https://${props.domain.name}`;
    if (props.domain !== undefined) this.domainTarget = this.#serveAt(props.domain, { http, stage });
    this.webhookUrl = `${this.apiUrl}${webhookPath.replace("{host}", "github")}`;
  }

  #serveAt(
    { name, certificateArn }: NonNullable<ApiEntryProps["domain"]>,
    { http, stage }: { readonly http: HttpApi; readonly stage: HttpStage },
  ): string {
    const certificate = Certificate.fromCertificateArn(this, "Certificate", certificateArn);
    const domain = new DomainName(this, "Domain", {
      domainName: name,
      certificate,
      securityPolicy: SecurityPolicy.TLS_1_2,
    });
    new ApiMapping(this, "Mapping", { api: http, domainName: domain, stage });
    return domain.regionalDomainName;
  }
}
