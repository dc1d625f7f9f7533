import { Aws, Validations } from "aws-cdk-lib";
import { AlarmBase } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { ServicePrincipal } from "aws-cdk-lib/aws-iam";
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
    const topic = new Topic(this, "Topic", { enforceSSL: true });
    // With a policy of its own, which TLS takes, a topic lacks the one that lets its whole account publish.
    const conditions = { StringEquals: { "aws:SourceAccount": Aws.ACCOUNT_ID } };
    topic.grantPublish(new ServicePrincipal("cloudwatch.amazonaws.com", { conditions }));
    topic.addSubscription(new EmailSubscription(email));
    Validations.of(topic).acknowledge({
      id: "AwsSolutions-SNS2",
      reason:
        "CloudWatch may not use the key that SNS has of its own, so that alarms would be lost. What an alarm says is its " +
        "name, its metric and its description, and it leaves as an e-mail.",
    });
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
