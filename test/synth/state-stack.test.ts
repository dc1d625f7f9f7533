import { describe, expect, test } from "vitest";
import { mayDo } from "#test/support/policy-guard.ts";
import {
  ofType,
  type Resource,
  resourcesIn,
  type Statement,
  synthesizeTemplates,
  textOf,
} from "#test/synth/synthesized.ts";

const { state, resources } = await synthesizeTemplates();

describe("the table", () => {
  test("the table survives its stack and a deletion by hand, and can be restored for 35 days", () => {
    state.hasResource("AWS::DynamoDB::GlobalTable", {
      DeletionPolicy: "Retain",
      UpdateReplacePolicy: "Retain",
      Properties: {
        BillingMode: "PAY_PER_REQUEST",
        SSESpecification: { SSEEnabled: true },
        Replicas: [
          {
            DeletionProtectionEnabled: true,
            PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
          },
        ],
      },
    });
  });

  test("the table has the keys and the keys-only indexes of docs/architecture.md", () => {
    const keysOnly = { ProjectionType: "KEYS_ONLY" };
    state.hasResourceProperties("AWS::DynamoDB::GlobalTable", {
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      GlobalSecondaryIndexes: [
        {
          IndexName: "due",
          KeySchema: [
            { AttributeName: "dueShard", KeyType: "HASH" },
            { AttributeName: "dueKey", KeyType: "RANGE" },
          ],
          Projection: keysOnly,
        },
        {
          IndexName: "state",
          KeySchema: [
            { AttributeName: "statePk", KeyType: "HASH" },
            { AttributeName: "stateSk", KeyType: "RANGE" },
          ],
          Projection: keysOnly,
        },
      ],
      TimeToLiveSpecification: { AttributeName: "expiresAt", Enabled: true },
    });
  });
});

describe("the bucket", () => {
  test("the bucket is private, encrypted and versioned, and survives its stack", () => {
    state.hasResource("AWS::S3::Bucket", {
      DeletionPolicy: "RetainExceptOnCreate",
      UpdateReplacePolicy: "Retain",
      Properties: {
        BucketEncryption: {
          ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: "AES256" } }],
        },
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
        VersioningConfiguration: { Status: "Enabled" },
      },
    });
  });

  test("the bucket deletes unfinished uploads, incoming files, and files that were not renewed in time", () => {
    const [bucket] = ofType(resources, "AWS::S3::Bucket");
    expect(bucket?.Properties.LifecycleConfiguration).toEqual({
      Rules: [
        {
          Status: "Enabled",
          AbortIncompleteMultipartUpload: { DaysAfterInitiation: 1 },
          NoncurrentVersionExpiration: { NoncurrentDays: 30 },
        },
        { Status: "Enabled", Prefix: "plans/", ExpirationInDays: 60 },
        { Status: "Enabled", Prefix: "inventories/", ExpirationInDays: 60 },
        { Status: "Enabled", Prefix: "renderings/", ExpirationInDays: 60 },
        { Status: "Enabled", Prefix: "artifacts/", ExpirationInDays: 60 },
        {
          Status: "Enabled",
          Prefix: "uploads/",
          ExpirationInDays: 1,
          NoncurrentVersionExpiration: { NoncurrentDays: 1 },
        },
        {
          Status: "Enabled",
          Prefix: "incoming/",
          ExpirationInDays: 1,
          NoncurrentVersionExpiration: { NoncurrentDays: 1 },
        },
      ],
    });
  });

  test("the bucket refuses requests without TLS", () => {
    const [policy] = ofType(resources, "AWS::S3::BucketPolicy");
    expect(JSON.stringify(policy?.Properties)).toContain('"Condition":{"Bool":{"aws:SecureTransport":"false"}}');
  });
});

describe("readers of artifacts", () => {
  type Policy = { readonly Statement: readonly (Statement & { readonly Principal: unknown })[] };
  const allowed = (among: readonly Resource[]) =>
    ofType(among, "AWS::S3::BucketPolicy").flatMap(({ Properties }) =>
      (Properties.PolicyDocument as Policy).Statement.filter(({ Effect }) => Effect === "Allow"),
    );

  test("nobody of another account may read anything by default [source.reading.other-account]", () => {
    expect(allowed(resources)).toEqual([]);
  });

  test("an account and a role may get artifacts, and may do nothing else [source.reading.other-account]", async () => {
    const role = "arn:aws:iam::222222222222:role/mirror";
    const granted = await synthesizeTemplates({ artifactReaders: `111122223333,${role}` });
    const [statement, ...more] = allowed(granted.resources);
    expect(more).toEqual([]);
    const { Principal, ...rest } = JSON.parse(
      JSON.stringify(statement, (_key, value) =>
        typeof value === "object" && value !== null && ("Fn::Join" in value || "Fn::GetAtt" in value)
          ? textOf(value)
          : value,
      ),
    );
    expect((Principal as { readonly AWS: readonly string[] }).AWS.toSorted()).toEqual([
      "arn:<AWS::Partition>:iam::111122223333:root",
      role,
    ]);
    expect(rest).toEqual({
      Effect: "Allow",
      Action: "s3:GetObject",
      Resource: expect.stringMatching(/\/artifacts\/\*$/),
    });
    const may = (action: string, key: string) => mayDo({ action, resource: key }, [rest as Statement]);
    const [bucket] = (rest.Resource as string).split("/artifacts/");
    expect(may("s3:GetObject", `${bucket}/artifacts/aa.tar.gz`)).toBe(true);
    for (const [action, key] of [
      ["s3:GetObject", `${bucket}/renderings/aa.json`],
      ["s3:GetObject", `${bucket}/artifacts`],
      ["s3:GetObjectVersion", `${bucket}/artifacts/aa.tar.gz`],
      ["s3:PutObject", `${bucket}/artifacts/aa.tar.gz`],
      ["s3:DeleteObject", `${bucket}/artifacts/aa.tar.gz`],
      ["s3:ListBucket", `${bucket}`],
    ] as const) {
      expect([action, key, may(action, key)]).toEqual([action, key, false]);
    }
  });
});

describe("the webhook's secret", () => {
  test("the webhook's secret has no value at first and stays when the stack is deleted", () => {
    const secrets = ofType(resources, "AWS::SecretsManager::Secret");
    expect(secrets).toHaveLength(1);
    expect(secrets[0]?.DeletionPolicy).toBe("RetainExceptOnCreate");
    expect(Object.keys(secrets[0]?.Properties ?? {}).sort()).toEqual(["Description", "Name", "Tags"]);
  });
});

describe("the audit log", () => {
  test("the audit log keeps its lines for two years and stays when its stack is deleted", () => {
    const groups = ofType(resourcesIn(state), "AWS::Logs::LogGroup");
    expect(groups).toHaveLength(1);
    const [group] = groups;
    expect([group?.DeletionPolicy, group?.UpdateReplacePolicy]).toEqual(["Retain", "Retain"]);
    expect(group?.Properties.RetentionInDays).toBe(731);
    expect(group?.Properties.DeletionProtectionEnabled).toBe(true);
  });

  test("no function may delete the audit log or shorten its retention", () => {
    const text = JSON.stringify(ofType(resources, "AWS::IAM::Policy"));
    expect(
      text.match(/"logs:\w+"/g)?.filter((action) => !/CreateLogStream|PutLogEvents|FilterLogEvents/.test(action)),
    ).toEqual([]);
  });
});

describe("the stacks", () => {
  test("the stacks name no account and no region", () => {
    expect(JSON.stringify(resources)).not.toMatch(/\b\d{12}\b|\b(us|eu|ap)-[a-z]+-\d\b/);
  });

  test("the stacks and the secrets are named after the installation", async () => {
    const other = await synthesizeTemplates({ installation: "staging" });
    other.state.hasResourceProperties("AWS::SecretsManager::Secret", { Name: "staging/webhook" });
    expect(JSON.stringify(other.control.toJSON())).toContain(":secret:staging/clusters/*");
    expect(JSON.stringify(other.control.toJSON())).not.toContain(":secret:starling/");
    expect(JSON.stringify(other.control.toJSON())).toContain(":role/staging/clusters/*");
    expect(JSON.stringify(other.control.toJSON())).not.toContain(":role/starling/");
  });
});
