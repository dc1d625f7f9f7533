/** The permissions of each function's role, read from the templates. */
import {
  functionNamed,
  listOf,
  type Resource,
  roleOf,
  type Statement,
  statementsByRole,
  textOf,
} from "#test/synth/synthesized.ts";

export const folders = [
  "api",
  "webhook",
  "tick",
  "discover",
  "resolve",
  "rollout",
  "render",
  "build",
  "apply",
  "report",
  "dashboard",
] as const;
export type Folder = (typeof folders)[number];

export const readActions = ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query"];
export const writeActions = [
  "dynamodb:PutItem",
  "dynamodb:BatchWriteItem",
  "dynamodb:UpdateItem",
  "dynamodb:DeleteItem",
];

export interface Grants {
  statementsOf(folder: Folder): readonly Statement[];
  /** The permissions of a function on one service, as `action resource`. */
  grantsOf(folder: Folder, service: string): readonly string[];
  /** The partitions of the table that a function may use with one of these actions, without indexes. */
  partitionsOf(folder: Folder, actions: readonly string[]): readonly string[];
}

export function grantsIn(resources: readonly Resource[]): Grants {
  const byRole = statementsByRole(resources);
  const statementsOf = (folder: Folder) => byRole.get(roleOf(functionNamed(resources, folder))) ?? [];
  return {
    statementsOf,
    grantsOf: (folder, service) =>
      statementsOf(folder)
        .flatMap(({ Action, Resource: on, Condition }) => {
          const source = Condition?.StringLike?.["s3:x-amz-copy-source"];
          const copied = source === undefined ? "" : ` from ${textOf(source)}`;
          return listOf(Action).flatMap((a) => listOf(on).map((r) => `${a} ${textOf(r)}${copied}`));
        })
        .filter((grant) => grant.startsWith(`${service}:`))
        .sort(),
    partitionsOf: (folder, actions) =>
      statementsOf(folder)
        .filter(({ Action }) => listOf(Action).some((action) => actions.includes(action)))
        .flatMap(({ Condition }) =>
          listOf(Condition?.["ForAllValues:StringLike"]?.["dynamodb:LeadingKeys"] as string[]),
        )
        .sort(),
  };
}
