import { Alarm, type AlarmProps, ComparisonOperator, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import type { Construct } from "constructs";

/** Sections of docs/runbook.md below "Alarms", one for each task of a person; see test/synth/runbook.test.ts. */
export type RunbookSection =
  | "halted-rollout"
  | "stale-source"
  | "old-revision"
  | "withheld-change"
  | "unreachable-clusters"
  | "zone-down"
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
  /** The problem, as a sentence. */
  readonly says: string;
  readonly section: RunbookSection;
  /** Default: greater than the threshold. */
  readonly comparisonOperator?: ComparisonOperator;
  /** Default: 1. */
  readonly evaluationPeriods?: number;
}

/**
 * A quarter of an hour, for what surveys report. CloudWatch evaluates its periods of five minutes each minute, and with a
 * survey that is a minute late, one of them has no report.
 */
export const threeOfFour = { evaluationPeriods: 4, datapointsToAlarm: 3 } as const;

/** An alarm whose description names the section of the runbook. By default, missing data does not raise it. */
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
