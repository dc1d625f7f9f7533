import { localAccountId, localRegion } from "#local/aws/lambda/lambda-context.ts";
import type { NamedOnly } from "#local/template/machine-plan.ts";
import type { ResourceValues } from "#local/template/resolve-value.ts";

const regional = (service: string, resource: string) =>
  `arn:aws:${service}:${localRegion}:${localAccountId}:${resource}`;
const iam = (resource: string) => `arn:aws:iam::${localAccountId}:${resource}`;

/** By type: the values of `Ref` and `Fn::GetAtt` for a resource of this name. */
const valuesOf: Readonly<Record<NamedOnly["type"], (name: string, apiEndpoint: string) => ResourceValues>> = {
  "AWS::ApiGatewayV2::Api": (name, ApiEndpoint) => ({ ref: name, attributes: { ApiEndpoint } }),
  // The address of documentation, by RFC 5737: nothing on this machine comes from it.
  "AWS::EC2::EIP": () => ({ ref: "192.0.2.1", attributes: {} }),
  "AWS::CloudWatch::Dashboard": (name) => ({ ref: name, attributes: {} }),
  "AWS::IAM::ManagedPolicy": (name) => ({ ref: iam(`policy/${name}`), attributes: {} }),
  "AWS::IAM::Role": (name) => ({ ref: name, attributes: { Arn: iam(`role/${name}`) } }),
  "AWS::Logs::LogGroup": (name) => ({ ref: name, attributes: { Arn: regional("logs", `log-group:${name}:*`) } }),
  "AWS::SNS::Topic": (name) => ({ ref: regional("sns", name), attributes: {} }),
};

/** The values in outputs of resources that this machine does not create, for an API at this endpoint. */
export function namedValues(namedOnly: readonly NamedOnly[], apiEndpoint: string): ReadonlyMap<string, ResourceValues> {
  return new Map(namedOnly.map(({ name, type }) => [name, valuesOf[type](name, apiEndpoint)]));
}
