import { Duration, RemovalPolicy, Stack, type StackProps, Validations } from "aws-cdk-lib";
import { AttributeType, Billing, ProjectionType, TableEncryptionV2, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { BlockPublicAccess, Bucket, BucketEncryption } from "aws-cdk-lib/aws-s3";
import { CfnSecret } from "aws-cdk-lib/aws-secretsmanager";
import type { Construct } from "constructs";
import type { Named } from "#infra/constructs/access.ts";
import { blobLifeDays, renewedFolders } from "#shared/fleet/blob-life.ts";

export interface StateStackProps extends StackProps {
  /** First part of the names of the installation's secrets. */
  readonly installation: string;
}

/**
 * What must survive every deployment: the table, the blobs, the webhook's secret, and the record of who changed what. It
 * holds no code, and nothing of it is deleted with the stack.
 */
export class StateStack extends Stack {
  readonly table: Named;
  readonly blobs: Named;
  readonly webhookSecretArn: string;
  /** Log group of `api`, which writes a line for every change. */
  readonly audit: Named;

  constructor(scope: Construct, id: string, props: StateStackProps) {
    super(scope, id, props);

    const string = AttributeType.STRING;
    const keysOnly = ProjectionType.KEYS_ONLY;
    const table = new TableV2(this, "Table", {
      partitionKey: { name: "pk", type: string },
      sortKey: { name: "sk", type: string },
      globalSecondaryIndexes: [
        {
          indexName: "due",
          partitionKey: { name: "dueShard", type: string },
          sortKey: { name: "dueKey", type: string },
          projectionType: keysOnly,
        },
        {
          indexName: "state",
          partitionKey: { name: "statePk", type: string },
          sortKey: { name: "stateSk", type: string },
          projectionType: keysOnly,
        },
      ],
      billing: Billing.onDemand(),
      encryption: TableEncryptionV2.awsManagedKey(),
      pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
      timeToLiveAttribute: "expiresAt",
      deletionProtection: true,
      removalPolicy: RemovalPolicy.RETAIN,
    });

    const blobs = new Bucket(this, "Blobs", {
      encryption: BucketEncryption.S3_MANAGED,
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      // Blobs never change; a version keeps one that was deleted by mistake for a while.
      versioned: true,
      lifecycleRules: [
        { abortIncompleteMultipartUploadAfter: Duration.days(1), noncurrentVersionExpiration: Duration.days(30) },
        // Whoever needs one stores it once more in time. As a version it is there for another month.
        ...renewedFolders.map((folder) => ({ prefix: `${folder}/`, expiration: Duration.days(blobLifeDays) })),
        // Read within minutes; the rendering that came out of it is stored elsewhere.
        { prefix: "incoming/", expiration: Duration.days(1), noncurrentVersionExpiration: Duration.days(1) },
      ],
      removalPolicy: RemovalPolicy.RETAIN,
    });
    Validations.of(blobs).acknowledge({
      id: "AwsSolutions-S1",
      reason:
        "Only four roles may read, each its own folders, and keys are digests or left to chance. An access log " +
        "would be a second bucket to protect; CloudTrail data events record the same where they are wanted.",
    });

    // No value: until an operator writes one, the webhook refuses every sender.
    const webhookSecret = new CfnSecret(this, "WebhookSecret", {
      name: `${props.installation}/webhook`,
      description: "JSON array of one or two strings with which the senders of push events sign them",
    });
    webhookSecret.applyRemovalPolicy(RemovalPolicy.RETAIN);
    Validations.of(webhookSecret).acknowledge({
      id: "AwsSolutions-SMG4",
      reason:
        "The git host holds the other copy, which AWS cannot rotate. Two values may be valid at once, so that an " +
        "operator rotates without losing a push.",
    });

    const audit = new LogGroup(this, "Audit", {
      // Auditors ask about the last year, and ask late.
      retention: RetentionDays.TWO_YEARS,
      deletionProtectionEnabled: true,
      removalPolicy: RemovalPolicy.RETAIN,
    });

    this.table = {
      name: this.exportValue(table.tableName, { name: `${id}-table-name` }),
      arn: this.exportValue(table.tableArn, { name: `${id}-table-arn` }),
    };
    this.blobs = {
      name: this.exportValue(blobs.bucketName, { name: `${id}-blobs-name` }),
      arn: this.exportValue(blobs.bucketArn, { name: `${id}-blobs-arn` }),
    };
    this.audit = {
      name: this.exportValue(audit.logGroupName, { name: `${id}-audit-name` }),
      arn: this.exportValue(audit.logGroupArn, { name: `${id}-audit-arn` }),
    };
    this.webhookSecretArn = this.exportValue(webhookSecret.ref, { name: `${id}-webhook-secret-arn` });
  }
}
