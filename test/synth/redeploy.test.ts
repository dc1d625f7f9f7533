/**
 * A failed deployment can be repeated, a deleted stack can be deployed again, and no stack prevents an update of the other
 * one.
 */
import { describe, expect, test } from "vitest";
import { starlingApp } from "#infra/starling-app.ts";
import {
  functionNamed,
  ofType,
  type Resource,
  resourcesIn,
  roleOf,
  synthesizeTemplates,
  textOf,
} from "#test/synth/synthesized.ts";

const { state, control, resources } = await synthesizeTemplates();
const stateResources = resourcesIn(state) as readonly (Resource & { readonly DependsOn?: readonly string[] })[];

const names = ["TableName", "BucketName", "Name", "LogGroupName", "QueueName", "RoleName"];
const keeps = (resource: Resource) => resource.DeletionPolicy ?? "Delete";

/** DynamoDB and CloudWatch Logs refuse every request to delete these. */
function isProtected({ Properties }: Resource): boolean {
  return JSON.stringify(Properties).includes('"DeletionProtectionEnabled":true');
}

describe("a first deployment that fails", () => {
  test("a failed first deployment leaves no resource with a name that the second one needs", () => {
    const left = resources.filter((resource) => keeps(resource) === "Retain");
    expect(left.map(({ Type }) => Type).sort()).toEqual(["AWS::DynamoDB::GlobalTable", "AWS::Logs::LogGroup"]);
    for (const { id, Properties } of left) expect([id, ...names.filter((name) => name in Properties)]).toEqual([id]);
    const [secret] = ofType(resources, "AWS::SecretsManager::Secret");
    expect(secret).toMatchObject({ DeletionPolicy: "RetainExceptOnCreate", Properties: { Name: "starling/webhook" } });
  });

  test("a failed first deployment is rolled back without a deletion that AWS refuses", () => {
    const guarded = resources.filter(isProtected);
    expect(guarded.map(({ Type }) => Type).sort()).toEqual(["AWS::DynamoDB::GlobalTable", "AWS::Logs::LogGroup"]);
    for (const resource of guarded) expect([resource.id, keeps(resource)]).toEqual([resource.id, "Retain"]);
  });

  test("a first deployment makes the audit log and the table last, because a failed one leaves them", () => {
    const after = new Map(stateResources.map(({ id, DependsOn = [] }) => [id, DependsOn]));
    const waitsFor = (id: string): readonly string[] =>
      (after.get(id) ?? []).flatMap((each) => [each, ...waitsFor(each)]);
    const idOf = (type: string) => stateResources.find(({ Type }) => Type === type)?.id ?? "";
    const [table, audit] = [idOf("AWS::DynamoDB::GlobalTable"), idOf("AWS::Logs::LogGroup")];
    const others = stateResources.map(({ id }) => id).filter((id) => id !== table && id !== audit);
    expect(others).toHaveLength(3);
    expect([...new Set(waitsFor(audit))].sort()).toEqual(others.toSorted());
    expect([...new Set(waitsFor(table))].sort()).toEqual([...others, audit].sort());
  });

  test("the CDK may delete the stacks of a failed deployment, because the app does not protect them", () => {
    const { state: made, control: running } = starlingApp({ context: { "aws:cdk:bundling-stacks": [] } });
    expect([made.terminationProtection, running.terminationProtection]).toEqual([false, false]);
  });
});

describe("a state stack that is deleted", () => {
  test("a deleted state stack leaves everything that holds state", () => {
    const gone = stateResources.filter((resource) => keeps(resource) === "Delete").map(({ Type }) => Type);
    // It only requires TLS, and no function uses the bucket then.
    expect(gone).toEqual(["AWS::S3::BucketPolicy"]);
    for (const resource of stateResources) {
      if (keeps(resource) !== "Delete") expect(resource.UpdateReplacePolicy).toBe("Retain");
    }
  });
});

describe("the settings name existing resources to use", () => {
  const table = "starling-state-TableCD117FA1-restored";

  test.each([
    ["by its name", table, `arn:<AWS::Partition>:dynamodb:<AWS::Region>:<AWS::AccountId>:table/${table}`],
    [
      "by its ARN",
      `arn:aws:dynamodb:eu-west-1:111122223333:table/${table}`,
      `arn:aws:dynamodb:eu-west-1:111122223333:table/${table}`,
    ],
  ])("the control stack uses a table named %s, and the table of the state stack stays", async (_how, setting, arn) => {
    const made = await synthesizeTemplates({ table: setting });
    expect(made.state.toJSON()).toEqual(state.toJSON());
    const tables = ofType(made.resources, "AWS::Lambda::Function").flatMap(({ Properties }) => {
      const { Variables } = (Properties.Environment ?? {}) as { Variables?: Record<string, unknown> };
      return Variables?.STARLING_TABLE ?? [];
    });
    expect(tables).toHaveLength(10);
    expect(new Set(tables)).toEqual(new Set([table]));
    const on = ofType(made.resources, "AWS::IAM::Policy").flatMap(({ Properties }) =>
      JSON.stringify(Properties.PolicyDocument).includes("dynamodb:")
        ? (Properties.PolicyDocument as { Statement: { Action: unknown; Resource: unknown }[] }).Statement.filter(
            ({ Action }) => JSON.stringify(Action).includes("dynamodb:"),
          ).map(({ Resource: resource }) => textOf(resource))
        : [],
    );
    expect([...new Set(on)].sort()).toEqual([arn, `${arn}/index/due`, `${arn}/index/state`]);
  });

  test("the control stack uses a named bucket, and the bucket of the state stack stays", async () => {
    const made = await synthesizeTemplates({ bucket: "kept-blobs" });
    expect(made.state.toJSON()).toEqual(state.toJSON());
    const text = JSON.stringify(made.control.toJSON());
    expect(text).toContain('"STARLING_BUCKET":"kept-blobs"');
    expect(text).toContain(':s3:::kept-blobs/artifacts/*"');
    expect(text).not.toContain('"BlobsName"');
    expect(text).not.toContain('"BlobsArn"');
  });

  test("the control stack uses a named webhook secret, and the state stack makes none", async () => {
    const arn = "arn:aws:secretsmanager:eu-west-1:111122223333:secret:starling/webhook-AbCdEf";
    const made = await synthesizeTemplates({ webhookSecret: arn });
    made.state.resourceCountIs("AWS::SecretsManager::Secret", 0);
    expect(functionNamed(made.resources, "webhook").Properties.Environment).toMatchObject({
      Variables: { STARLING_WEBHOOK_SECRET: arn },
    });
    expect(made.control.findOutputs("WebhookSecretArn")).toMatchObject({ WebhookSecretArn: { Value: arn } });
  });
});

describe("the roles that clusters and their accounts trust", () => {
  const trusted = ["apply", "discover"] as const;

  test("the trusted roles stay when the control stack is deleted, and go when its creation is rolled back", () => {
    const kept = trusted.map((folder) => roleOf(functionNamed(resources, folder)));
    for (const { id, DeletionPolicy = "Delete", UpdateReplacePolicy = "Delete" } of ofType(
      resources,
      "AWS::IAM::Role",
    )) {
      const expected = kept.includes(id) ? ["RetainExceptOnCreate", "Retain"] : ["Delete", "Delete"];
      expect([id, DeletionPolicy, UpdateReplacePolicy]).toEqual([id, ...expected]);
    }
  });

  test.each([
    ["apply", "applyRole", "ApplyRole"],
    ["discover", "discoverRole", "DiscoverRole"],
  ] as const)(
    "the role of %s is the same in the next control stack that names it, with all its permissions",
    async (folder, setting, output) => {
      const name = `starling-control-${folder}-AbCdEf`;
      const arn = `arn:aws:iam::111122223333:role/${name}`;
      const made = await synthesizeTemplates({ [setting]: arn });
      expect(functionNamed(made.resources, folder).Properties.Role).toBe(arn);
      expect(ofType(made.resources, "AWS::IAM::Role").filter(({ id }) => id.includes(output))).toEqual([]);
      expect(made.control.findOutputs(output)).toMatchObject({ [output]: { Value: arn } });
      const statementsOf = (all: readonly Resource[], role: unknown) =>
        ofType(all, "AWS::IAM::Policy")
          .filter(({ Properties }) => JSON.stringify(Properties.Roles) === JSON.stringify([role]))
          .map(({ Properties }) => Properties.PolicyDocument);
      const own = statementsOf(resources, { Ref: roleOf(functionNamed(resources, folder)) });
      expect(own).toHaveLength(1);
      expect(statementsOf(made.resources, name)).toEqual(own);
    },
  );
});

describe("the role of a zone that clusters trust", () => {
  const zone = { name: "spoke", subnets: ["subnet-0a1b2c3d4e5f60718"], securityGroups: ["sg-0a1b2c3d4e5f60718"] };
  const policiesOf = (all: readonly Resource[], role: unknown) =>
    ofType(all, "AWS::IAM::Policy")
      .filter(({ Properties }) => JSON.stringify(Properties.Roles) === JSON.stringify([role]))
      .map(({ Properties }) => Properties.PolicyDocument);

  test("a role that the stack makes stays when the stack is deleted", async () => {
    const made = await synthesizeTemplates({ zones: JSON.stringify([zone]) });
    const role = made.resources.find(({ id }) => id === roleOf(functionNamed(made.resources, "apply-spoke")));
    expect(role).toMatchObject({ DeletionPolicy: "RetainExceptOnCreate", UpdateReplacePolicy: "Retain" });
  });

  test("the next stack that names it uses it with all its permissions, makes none, and prints it", async () => {
    const first = await synthesizeTemplates({ zones: JSON.stringify([zone]) });
    const arn = "arn:aws:iam::111122223333:role/starling-control-spoke-AbCdEf";
    const made = await synthesizeTemplates({ zones: JSON.stringify([{ ...zone, role: arn }]) });
    expect(functionNamed(made.resources, "apply-spoke").Properties.Role).toBe(arn);
    expect(ofType(made.resources, "AWS::IAM::Role").filter(({ id }) => id.includes("Zonespoke"))).toEqual([]);
    expect(made.control.findOutputs("ZoneSpokeRole")).toMatchObject({ ZoneSpokeRole: { Value: arn } });
    const own = policiesOf(first.resources, { Ref: roleOf(functionNamed(first.resources, "apply-spoke")) });
    expect(own).toHaveLength(1);
    expect(policiesOf(made.resources, "starling-control-spoke-AbCdEf")).toEqual(own);
  });
});

describe("the exports of the state stack", () => {
  test("the control stack imports no exports, and reads outputs that exist, so the state stack can always be updated", () => {
    const text = JSON.stringify(control.toJSON());
    expect(text).not.toContain("Fn::ImportValue");
    const read = [...text.matchAll(/"Fn::GetStackOutput":(\{[^}]*\})/g)].map(
      ([, output = "{}"]) => JSON.parse(output) as Readonly<Record<string, string>>,
    );
    expect(read.length).toBeGreaterThan(20);
    const outputs = Object.keys(state.findOutputs("*"));
    for (const { StackName, OutputName } of read) {
      expect(StackName).toBe("starling-state");
      expect(outputs).toContain(OutputName);
    }
  });
});
