import { describe, expect, test } from "vitest";
import { ofType, resourcesIn, synthesizeTemplates } from "#test/synth/synthesized.ts";

const { state, resources } = await synthesizeTemplates();

describe("the table", () => {
  test("survives its stack, deletion by hand, and 35 days of mistakes", () => {
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

  test("has the keys and the keys-only indexes of docs/architecture.md", () => {
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
  test("is private, encrypted, versioned and survives its stack", () => {
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

  test("forgets uploads that were never finished, what was on its way, and what nobody stored again in time", () => {
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
          Prefix: "incoming/",
          ExpirationInDays: 1,
          NoncurrentVersionExpiration: { NoncurrentDays: 1 },
        },
      ],
    });
  });

  test("refuses anything but TLS", () => {
    const [policy] = ofType(resources, "AWS::S3::BucketPolicy");
    expect(JSON.stringify(policy?.Properties)).toContain('"Condition":{"Bool":{"aws:SecureTransport":"false"}}');
  });
});

describe("the webhook's secret", () => {
  test("is made without a value and kept with the stack gone", () => {
    const secrets = ofType(resources, "AWS::SecretsManager::Secret");
    expect(secrets).toHaveLength(1);
    expect(secrets[0]?.DeletionPolicy).toBe("RetainExceptOnCreate");
    expect(Object.keys(secrets[0]?.Properties ?? {}).sort()).toEqual(["Description", "Name", "Tags"]);
  });
});

describe("the audit log", () => {
  test("is kept for two years, and with its stack gone", () => {
    const groups = ofType(resourcesIn(state), "AWS::Logs::LogGroup");
    expect(groups).toHaveLength(1);
    const [group] = groups;
    expect([group?.DeletionPolicy, group?.UpdateReplacePolicy]).toEqual(["Retain", "Retain"]);
    expect(group?.Properties.RetentionInDays).toBe(731);
    expect(group?.Properties.DeletionProtectionEnabled).toBe(true);
  });

  test("is nobody's to delete or to shorten", () => {
    const text = JSON.stringify(ofType(resources, "AWS::IAM::Policy"));
    expect(
      text.match(/"logs:\w+"/g)?.filter((action) => !/CreateLogStream|PutLogEvents|FilterLogEvents/.test(action)),
    ).toEqual([]);
  });
});

describe("the stacks", () => {
  test("name no account and no region", () => {
    expect(JSON.stringify(resources)).not.toMatch(/\b\d{12}\b|\b(us|eu|ap)-[a-z]+-\d\b/);
  });

  test("are named after the installation, and so are its secrets", async () => {
    const other = await synthesizeTemplates({ installation: "staging" });
    other.state.hasResourceProperties("AWS::SecretsManager::Secret", { Name: "staging/webhook" });
    expect(JSON.stringify(other.control.toJSON())).toContain(":secret:staging/clusters/*");
    expect(JSON.stringify(other.control.toJSON())).not.toContain(":secret:starling/");
    expect(JSON.stringify(other.control.toJSON())).toContain(":role/staging/clusters/*");
    expect(JSON.stringify(other.control.toJSON())).not.toContain(":role/starling/");
  });
});
