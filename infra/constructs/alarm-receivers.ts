import { Aws, RemovalPolicy } from "aws-cdk-lib";
import { AlarmBase } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { type ITopic, Topic } from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Construct } from "constructs";

export interface AlarmReceiversProps {
  /** An existing topic. */
  readonly topicArn?: string;
  /** An address that gets a new topic. */
  readonly email?: string;
}

/** The receivers of alarms. Without settings there are none. */
export class AlarmReceivers extends Construct {
  readonly #topics: readonly ITopic[];

  constructor(scope: Construct, id: string, { topicArn, email }: AlarmReceiversProps) {
    super(scope, id);
    this.#topics = [
      ...(topicArn === undefined ? [] : [Topic.fromTopicArn(this, "Existing", topicArn)]),
      ...(email === undefined ? [] : [this.#topicFor(email)]),
    ];
  }

  #topicFor(email: string): Topic {
    const account = { StringEquals: { "aws:SourceAccount": Aws.ACCOUNT_ID } };
    const cloudWatch = new ServicePrincipal("cloudwatch.amazonaws.com", { conditions: account });
    // CloudWatch may not use the default key of SNS, so that alarms would be lost.
    const key = new Key(this, "Key", {
      description: "Starling: encrypts alarms for their receivers",
      enableKeyRotation: true,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    key.grant(cloudWatch, "kms:GenerateDataKey*", "kms:Decrypt");
    const topic = new Topic(this, "Topic", { enforceSSL: true, masterKey: key });
    // Enforcing TLS gives the topic a policy, which replaces the default policy that lets the whole account publish.
    topic.grantPublish(cloudWatch);
    topic.addSubscription(new EmailSubscription(email));
    return topic;
  }

  /** Sends every alarm of the scope to the receivers, when it begins and when it ends. */
  hearOf(scope: Construct): void {
    const actions = this.#topics.map((topic) => new SnsAction(topic));
    for (const alarm of scope.node.findAll()) {
      if (!(alarm instanceof AlarmBase)) continue;
      alarm.addAlarmAction(...actions);
      alarm.addOkAction(...actions);
    }
  }
}
