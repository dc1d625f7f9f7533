import { Aws, RemovalPolicy } from "aws-cdk-lib";
import { AlarmBase } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { type ITopic, Topic } from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Construct } from "constructs";

export interface AlarmReceiversProps {
  /** A topic that is there already. */
  readonly topicArn?: string;
  /** Who gets a topic made for them. */
  readonly email?: string;
}

/** Who is told of alarms: nobody, until an operator says who. */
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
    // CloudWatch may not use the key that SNS has of its own: alarms would be lost.
    const key = new Key(this, "Key", {
      description: "Starling: alarms on their way to their receivers",
      enableKeyRotation: true,
      removalPolicy: RemovalPolicy.DESTROY,
    });
    key.grant(cloudWatch, "kms:GenerateDataKey*", "kms:Decrypt");
    const topic = new Topic(this, "Topic", { enforceSSL: true, masterKey: key });
    // With a policy of its own, which TLS takes, a topic lacks the one that lets its whole account publish.
    topic.grantPublish(cloudWatch);
    topic.addSubscription(new EmailSubscription(email));
    return topic;
  }

  /** Every alarm below, when it begins and when it is over. */
  hearOf(scope: Construct): void {
    const actions = this.#topics.map((topic) => new SnsAction(topic));
    for (const alarm of scope.node.findAll()) {
      if (!(alarm instanceof AlarmBase)) continue;
      alarm.addAlarmAction(...actions);
      alarm.addOkAction(...actions);
    }
  }
}
