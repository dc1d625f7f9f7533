import { Alarm, type AlarmProps, ComparisonOperator, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import type { Construct } from "constructs";

/** Sections of docs/runbook.md below "Alarms", each about one thing that a person does; see test/synth/runbook.test.ts. */
export type RunbookSection =
  | "halted-rollout"
  | "stale-source"
  | "old-revision"
  | "unreachable-clusters"
  | "messages-wait"
  | "dead-letters"
  | "function-errors"
  | "throttles"
  | "cost"
  | "silent-timer"
  | "failing-timer"
  | "late-timer"
  | "rows-of-a-newer-version";

export interface RunbookAlarmProps
  extends Omit<AlarmProps, "alarmDescription" | "comparisonOperator" | "evaluationPeriods"> {
  /** What is the matter; a sentence. */
  readonly says: string;
  readonly section: RunbookSection;
  /** Above it by default. */
  readonly comparisonOperator?: ComparisonOperator;
  /** 1 by default. */
  readonly evaluationPeriods?: number;
}

/** An alarm that says where the runbook has what to do. What nobody measures is no matter, unless it says otherwise. */
export class RunbookAlarm extends Alarm {
  constructor(scope: Construct, id: string, { says, section, ...props }: RunbookAlarmProps) {
    super(scope, id, {
      comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
      evaluationPeriods: 1,
      treatMissingData: TreatMissingData.NOT_BREACHING,
      ...props,
      alarmDescription: runbookText(says, section),
    });
  }
}

export function runbookText(says: string, section: RunbookSection): string {
  return `${says} What to do: docs/runbook.md#${section}`;
}
