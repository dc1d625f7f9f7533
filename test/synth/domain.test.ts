/** A domain gives the API an address that stays when the control stack is removed and deployed again. */
import { describe, expect, test } from "vitest";
import { readSettings } from "#infra/read-settings.ts";
import { synthesize } from "#local/template/synthesize.ts";
import { templateFaults } from "#test/support/template-faults.ts";
import { ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const domain = "starling.example.com";
const domainCertificate = "arn:aws:acm:us-east-1:111122223333:certificate/0a1b2c3d-0000-4000-8000-000000000000";
const context = { domain, domainCertificate };

describe("with a domain and a certificate", () => {
  test("the API and the webhook have the host name, and the outputs say what its DNS record points to", async () => {
    const { control, resources } = await synthesizeTemplates(context);
    const outputs = control.findOutputs("*") as Record<string, { readonly Value: unknown }>;
    expect(textOf(outputs.ApiUrl?.Value)).toBe(`https://${domain}`);
    expect(textOf(outputs.WebhookUrl?.Value)).toBe(`https://${domain}/hook/github`);
    const [named, ...others] = ofType(resources, "AWS::ApiGatewayV2::DomainName");
    expect(others).toEqual([]);
    expect(named?.Properties).toMatchObject({
      DomainName: domain,
      DomainNameConfigurations: [{ CertificateArn: domainCertificate, SecurityPolicy: "TLS_1_2" }],
    });
    expect(textOf(outputs.DomainTarget?.Value)).toBe(`<${named?.id}.RegionalDomainName>`);
    const [mapping] = ofType(resources, "AWS::ApiGatewayV2::ApiMapping");
    const [api] = ofType(resources, "AWS::ApiGatewayV2::Api");
    expect([textOf(mapping?.Properties.ApiId), textOf(mapping?.Properties.DomainName)]).toEqual([
      `<${api?.id}>`,
      `<${named?.id}>`,
    ]);
  });

  test("AWS accepts every property, and every reference has a target", async () => {
    expect(templateFaults(await synthesize(context))).toEqual([]);
  });
});

test("no domain name is created without the settings domain and domainCertificate", async () => {
  const { control, resources } = await synthesizeTemplates();
  expect(ofType(resources, "AWS::ApiGatewayV2::DomainName")).toEqual([]);
  expect(Object.keys(control.findOutputs("DomainTarget"))).toEqual([]);
});

test.each([
  [{ domain }, "setting domain requires setting domainCertificate; set both, or neither"],
  [{ domainCertificate }, "setting domainCertificate requires setting domain; set both, or neither"],
])("a domain without a certificate, or a certificate without a domain, is refused: %o", (given, message) => {
  expect(() => readSettings(given)).toThrow(message);
});
