/** What CloudWatch would say of an alarm, from its definition in the template and the lines that functions wrote. */
import type { Resource } from "#test/synth/synthesized.ts";

export type EmbeddedLine = Readonly<Record<string, unknown>> & {
  readonly _aws?: {
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string;
      readonly Dimensions: readonly (readonly string[])[];
      readonly Metrics: readonly { readonly Name: string }[];
    }[];
  };
};

interface AlarmDefinition {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Statistic: string;
  readonly Dimensions: readonly { readonly Name: string; readonly Value: unknown }[];
  readonly Threshold: number;
  readonly ComparisonOperator: string;
  readonly TreatMissingData: string;
}

/**
 * The state after periods that all were as these lines say; of an alarm on one metric above a threshold.
 * @param nameHere - what a dimension's value in the template is on the machine that wrote the lines.
 */
export function alarmState(
  { id, Properties }: Resource,
  lines: readonly EmbeddedLine[],
  nameHere: (value: unknown) => string,
): "OK" | "ALARM" {
  const alarm = Properties as unknown as AlarmDefinition;
  if (alarm.ComparisonOperator !== "GreaterThanThreshold" || alarm.Statistic !== "Maximum")
    throw new Error(`${id} compares ${alarm.Statistic} by ${alarm.ComparisonOperator}, which is not played here`);
  const wanted = new Map(alarm.Dimensions.map(({ Name, Value }) => [Name, nameHere(Value)]));
  const values = lines.flatMap((line) => (isOf(line, alarm, wanted) ? [Number(line[alarm.MetricName])] : []));
  if (values.length === 0) return alarm.TreatMissingData === "breaching" ? "ALARM" : "OK";
  return Math.max(...values) > alarm.Threshold ? "ALARM" : "OK";
}

/** A metric is its namespace, its name, and exactly these dimensions. */
function isOf(line: EmbeddedLine, alarm: AlarmDefinition, wanted: ReadonlyMap<string, string>): boolean {
  return (line._aws?.CloudWatchMetrics ?? []).some(
    ({ Namespace, Dimensions, Metrics }) =>
      Namespace === alarm.Namespace &&
      Metrics.some(({ Name }) => Name === alarm.MetricName) &&
      Dimensions.some(
        (names) => names.length === wanted.size && names.every((name) => wanted.get(name) === line[name]),
      ),
  );
}
