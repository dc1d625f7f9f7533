import { ArnFormat, Aws, Duration, Stack, Validations } from "aws-cdk-lib";
import { PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { CfnEventInvokeConfig, type IFunction } from "aws-cdk-lib/aws-lambda";
import { CfnSchedule } from "aws-cdk-lib/aws-scheduler";
import { Queue, QueueEncryption, RedrivePermission } from "aws-cdk-lib/aws-sqs";
import { Construct } from "constructs";

/**
 * Invokes a function every minute, with a role that can do nothing else. The scheduler does not wait for the function. An event
 * that it could not deliver becomes a dead letter, and so does an event that the function failed to handle.
 */
export class EveryMinute extends Construct {
  readonly deadLetters: Queue;

  constructor(scope: Construct, id: string, target: IFunction) {
    super(scope, id);
    this.deadLetters = new Queue(this, "DeadLetters", {
      encryption: QueueEncryption.SQS_MANAGED,
      enforceSSL: true,
      retentionPeriod: Duration.days(14),
      // Only the scheduler and Lambda send to it; no queue does.
      redriveAllowPolicy: { redrivePermission: RedrivePermission.DENY_ALL },
    });
    Validations.of(this.deadLetters).acknowledge({
      id: "AwsSolutions-SQS3",
      reason: "It is the dead-letter queue of the schedule and the function below, which the rule does not check.",
    });
    // The scheduler serves every account, but may assume the role only for schedules of this account. The source ARN is the group
    // of the schedule, not the schedule itself.
    const group = Stack.of(this).formatArn({
      service: "scheduler",
      resource: "schedule-group",
      resourceName: "default",
      arnFormat: ArnFormat.SLASH_RESOURCE_NAME,
    });
    const role = new Role(this, "Role", {
      assumedBy: new ServicePrincipal("scheduler.amazonaws.com", {
        conditions: { StringEquals: { "aws:SourceAccount": Aws.ACCOUNT_ID, "aws:SourceArn": group } },
      }),
    });
    role.addToPolicy(new PolicyStatement({ actions: ["lambda:InvokeFunction"], resources: [target.functionArn] }));
    role.addToPolicy(new PolicyStatement({ actions: ["sqs:SendMessage"], resources: [this.deadLetters.queueArn] }));
    const schedule = new CfnSchedule(this, "Schedule", {
      scheduleExpression: "rate(1 minute)",
      flexibleTimeWindow: { mode: "OFF" },
      target: {
        arn: target.functionArn,
        roleArn: role.roleArn,
        deadLetterConfig: { arn: this.deadLetters.queueArn },
        // The next minute sends a new tick, so that an old one is not needed.
        retryPolicy: { maximumEventAgeInSeconds: 60, maximumRetryAttempts: 1 },
      },
    });
    schedule.node.addDependency(role);

    target.addToRolePolicy(
      new PolicyStatement({ actions: ["sqs:SendMessage"], resources: [this.deadLetters.queueArn] }),
    );
    const failures = new CfnEventInvokeConfig(this, "Failures", {
      functionName: target.functionName,
      qualifier: "$LATEST",
      // A failed tick is not tried again, and a throttled one only within its minute.
      maximumRetryAttempts: 0,
      maximumEventAgeInSeconds: 60,
      destinationConfig: { onFailure: { destination: this.deadLetters.queueArn } },
    });
    // Lambda refuses a destination that the function's role may not send to.
    if (target.role !== undefined) failures.node.addDependency(target.role);
  }
}
