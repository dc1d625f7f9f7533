import { Rule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";

/**
 * Passes to the webhook what happens in the repositories of this account and region: a moved reference in CodeCommit, and a
 * pushed or deleted image in ECR. AWS sends these events to the default bus of the account, and sends no webhooks.
 */
export class RepositoryEvents extends Construct {
  constructor(scope: Construct, id: string, webhook: IFunction) {
    super(scope, id);
    new Rule(this, "CodeCommit", {
      description: "Starling: references of CodeCommit that move",
      eventPattern: { source: ["aws.codecommit"], detailType: ["CodeCommit Repository State Change"] },
      targets: [new LambdaFunction(webhook)],
    });
    new Rule(this, "Ecr", {
      description: "Starling: images of ECR that are pushed or deleted",
      eventPattern: {
        source: ["aws.ecr"],
        detailType: ["ECR Image Action"],
        detail: { result: ["SUCCESS"], "action-type": ["PUSH", "DELETE"] },
      },
      targets: [new LambdaFunction(webhook)],
    });
  }
}
