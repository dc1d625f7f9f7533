import { type ILogGroup, QueryDefinition, QueryString } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";

export interface SavedQueriesProps {
  /** First part of their names: an account may hold several installations. */
  readonly installation: string;
  readonly logGroups: readonly ILogGroup[];
}

const reported = ["service", "level", "message", "kind", "namespace", "name", "cluster", "rollout", "phase", "reason"];

/** By the fields of shared/fleet/log-fields.ts; what is in capitals is for whoever asks to replace. */
const questions: Readonly<Record<string, readonly string[]>> = {
  "what one push led to": ['correlationId = "CORRELATION_ID"'],
  "about one object": ['namespace = "NAMESPACE"', 'name = "NAME" or subject = "KIND/NAME"'],
  "on one cluster": ['cluster = "CLUSTER"'],
  "what went wrong": ['level in ["WARN", "ERROR"]'],
};

/** Questions of the runbook, ready to be asked in CloudWatch Logs Insights. */
export class SavedQueries extends Construct {
  constructor(scope: Construct, id: string, { installation, logGroups }: SavedQueriesProps) {
    super(scope, id);
    for (const [question, filterStatements] of Object.entries(questions)) {
      new QueryDefinition(this, question.replaceAll(" ", ""), {
        queryDefinitionName: `${installation}/${question}`,
        queryString: new QueryString({
          fields: ["@timestamp", ...reported, "correlationId"],
          filterStatements: [...filterStatements],
          sort: "@timestamp asc",
          limit: 1000,
        }),
        logGroups: [...logGroups],
      });
    }
  }
}
