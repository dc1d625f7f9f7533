import { type ILogGroup, QueryDefinition, QueryString } from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";

export interface SavedQueriesProps {
  /** First part of the queries' names, because an account may have several installations. */
  readonly installation: string;
  readonly logGroups: readonly ILogGroup[];
}

const reported = ["service", "level", "message", "kind", "namespace", "name", "cluster", "rollout", "phase", "reason"];

/** Filters with the fields of shared/fleet/log-fields.ts. People replace the words in capitals. */
const questions: Readonly<Record<string, readonly string[]>> = {
  "what one push caused": ['correlationId = "CORRELATION_ID"'],
  "about one object": ['namespace = "NAMESPACE"', 'name = "NAME" or subject = "KIND/NAME"'],
  "on one cluster": ['cluster = "CLUSTER"'],
  "what went wrong": ['level in ["WARN", "ERROR"]'],
};

/** Queries of the runbook for CloudWatch Logs Insights. */
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
