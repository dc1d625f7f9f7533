import { CfnOutput, Duration, Fn, RemovalPolicy, Stack, type StackProps, Validations } from "aws-cdk-lib";
import { AttributeType, Billing, ProjectionType, TableEncryptionV2, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { AccountPrincipal, ArnPrincipal, PolicyStatement } from "aws-cdk-lib/aws-iam";
import { LogGroup, RetentionDays } from "aws-cdk-lib/aws-logs";
import { BlockPublicAccess, Bucket, BucketEncryption } from "aws-cdk-lib/aws-s3";
import { CfnSecret } from "aws-cdk-lib/aws-secretsmanager";
import type { Construct } from "constructs";
import type { Named } from "#infra/constructs/access.ts";
import { blobLifeDays, renewedFolders } from "#shared/fleet/blob-life.ts";

export interface StateStackProps extends StackProps {
  /** First part of the names of the installation's secrets. */
  readonly installation: string;
  /** An existing secret of the webhook. */
  readonly webhookSecretArn?: string;
  /** Account ids and ARNs of roles and users that may read artifacts. */
  readonly artifactReaders: readonly string[];
}

/**
 * The data that must survive every deployment: the table, the blobs, the webhook's secret, and the audit log. The stack has no
 * code, and its resources are kept when it is deleted (docs/adr/0027-resources-that-survive-stack-deletion.md).
 *
 * CloudFormation rolls a failed first deployment back, which must not prevent the second. Resources that are kept are still
 * deleted by a rollback of their creation. Resources with deletion protection cannot be deleted: they are created last, and have
 * no fixed names.
 */
export class StateStack extends Stack {
  readonly table: Named;
  readonly blobs: Named;
  readonly webhookSecretArn: string;
  /** Log group of `api`, which logs a line for every change. */
  readonly audit: Named;

  constructor(scope: Construct, id: string, props: StateStackProps) {
    super(scope, id, props);
    const table = this.#table();
    const blobs = this.#blobs();
    if (props.artifactReaders.length > 0) this.#grantArtifacts(blobs, props.artifactReaders);
    const audit = this.#audit();
    audit.node.addDependency(blobs);
    table.node.addDependency(audit);

    this.table = {
      name: this.#report("TableName", table.tableName),
      arn: this.#report("TableArn", table.tableArn),
    };
    this.blobs = {
      name: this.#report("BlobsName", blobs.bucketName),
      arn: this.#report("BlobsArn", blobs.bucketArn),
    };
    this.audit = {
      name: this.#report("AuditName", audit.logGroupName),
      arn: this.#report("AuditArn", audit.logGroupArn),
    };
    if (props.webhookSecretArn === undefined) {
      const secret = this.#webhookSecret(props.installation);
      audit.node.addDependency(secret);
      this.webhookSecretArn = this.#report("WebhookSecretArn", secret.ref);
    } else {
      this.webhookSecretArn = props.webhookSecretArn;
    }
  }

  /**
   * Passes a value to the control stack with an output that it reads when it is deployed. Exports cannot change or be deleted while
   * another stack imports them. The exports of the version before stay, because its control stack exists until the new one is deployed.
   */
  #report(name: string, value: string): string {
    new CfnOutput(this, name, { value });
    const before = name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "-").toLowerCase();
    this.exportValue(value, { name: `${this.stackName}-${before}` });
    return Fn.getStackOutput(this.stackName, name);
  }

  #table(): TableV2 {
    const string = AttributeType.STRING;
    const keysOnly = ProjectionType.KEYS_ONLY;
    return new TableV2(this, "Table", {
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
  }

  #blobs(): Bucket {
    const blobs = new Bucket(this, "Blobs", {
      encryption: BucketEncryption.S3_MANAGED,
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      enforceSSL: true,
      minimumTLSVersion: 1.2,
      // Blobs never change. Versions keep a blob that was deleted by mistake for a while.
      versioned: true,
      lifecycleRules: [
        { abortIncompleteMultipartUploadAfter: Duration.days(1), noncurrentVersionExpiration: Duration.days(30) },
        // A function that still needs a blob stores it again in time. As a version it stays for another month.
        ...renewedFolders.map((folder) => ({ prefix: `${folder}/`, expiration: Duration.days(blobLifeDays) })),
        // Read within minutes; the resulting rendering is stored elsewhere.
        // An artifact is made of it within minutes. An upload that nobody finishes is gone after a day.
        { prefix: "uploads/", expiration: Duration.days(1), noncurrentVersionExpiration: Duration.days(1) },
        { prefix: "incoming/", expiration: Duration.days(1), noncurrentVersionExpiration: Duration.days(1) },
      ],
      removalPolicy: RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    });
    Validations.of(blobs).acknowledge({
      id: "AwsSolutions-S1",
      reason:
        "Only five roles may read, each its own folders, and keys are digests or random. An access log " +
        "would be a second bucket to protect; CloudTrail data events record the same.",
    });
    return blobs;
  }

  /** To read an artifact whose digest is known: no list, and nothing else of the bucket. */
  #grantArtifacts(blobs: Bucket, readers: readonly string[]): void {
    const principals = readers.map((reader) =>
      /^\d{12}$/.test(reader) ? new AccountPrincipal(reader) : new ArnPrincipal(reader),
    );
    const resources = [blobs.arnForObjects("artifacts/*")];
    blobs.addToResourcePolicy(new PolicyStatement({ actions: ["s3:GetObject"], principals, resources }));
  }

  #webhookSecret(installation: string): CfnSecret {
    // No value: until an operator writes one, the webhook refuses every sender.
    const webhookSecret = new CfnSecret(this, "WebhookSecret", {
      name: `${installation}/webhook`,
      description: "JSON array of one or two strings with which the senders of push events sign them",
    });
    webhookSecret.applyRemovalPolicy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE);
    Validations.of(webhookSecret).acknowledge({
      id: "AwsSolutions-SMG4",
      reason:
        "The git host holds the other copy, which AWS cannot rotate. Two values may be valid at once, so that an " +
        "operator rotates without losing a push.",
    });
    return webhookSecret;
  }

  #audit(): LogGroup {
    return new LogGroup(this, "Audit", {
      // Auditors ask about the last year, and often months later.
      retention: RetentionDays.TWO_YEARS,
      deletionProtectionEnabled: true,
      removalPolicy: RemovalPolicy.RETAIN,
    });
  }
}
