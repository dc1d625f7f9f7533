/**
 * Computes the states of alarms as CloudWatch does, from their definitions in the template and from measured samples.
 */
import { evaluateMath, type Value } from "#test/support/metric-math.ts";
import { type Resource, textOf } from "#test/synth/synthesized.ts";

export type AlarmState = "OK" | "ALARM" | "INSUFFICIENT_DATA";

/** A metric is identified by its namespace, its name and exactly these dimensions. */
export interface MetricName {
  readonly namespace: string;
  readonly name: string;
  readonly dimensions: Readonly<Record<string, string>>;
}

export interface Sample extends MetricName {
  readonly atSeconds: number;
  readonly value: number;
}

interface TemplateMetric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions?: readonly { readonly Name: string; readonly Value: unknown }[];
}

interface AlarmDefinition extends Partial<TemplateMetric> {
  readonly Statistic?: string;
  readonly Period?: number;
  readonly Metrics?: readonly {
    readonly Id: string;
    readonly Expression?: string;
    readonly ReturnData?: boolean;
    readonly MetricStat?: { readonly Metric: TemplateMetric; readonly Period: number; readonly Stat: string };
  }[];
  readonly Threshold: number;
  readonly ComparisonOperator: string;
  readonly EvaluationPeriods: number;
  readonly DatapointsToAlarm?: number;
  readonly TreatMissingData?: string;
}

/**
 * The state of an alarm at a time, after the state `before`. For missing data CloudWatch may read a few more periods;
 * here it reads only the evaluated ones. @throws Error on a definition that this function does not support.
 */
export function alarmState(
  alarm: Resource,
  samples: readonly Sample[],
  { nowSeconds, before = "OK" }: { readonly nowSeconds: number; readonly before?: AlarmState },
): AlarmState {
  const definition = alarm.Properties as unknown as AlarmDefinition;
  const { EvaluationPeriods, DatapointsToAlarm = EvaluationPeriods, TreatMissingData = "missing" } = definition;
  const seconds = periodOf(alarm);
  const values = Array.from({ length: EvaluationPeriods }, (_, index) => {
    const to = nowSeconds - index * seconds;
    const within = samples.filter(({ atSeconds }) => atSeconds >= to - seconds && atSeconds < to);
    return valueIn(alarm, within);
  });
  const known = values.filter((value) => value !== undefined);
  if (known.length === 0 && TreatMissingData === "missing") return "INSUFFICIENT_DATA";
  if (known.length === 0 && TreatMissingData === "ignore") return before;
  const missing = TreatMissingData === "breaching" ? values.length - known.length : 0;
  const breaching = known.filter((value) => isBreaching(value, definition)).length + missing;
  return breaching >= DatapointsToAlarm ? "ALARM" : "OK";
}

/** @param stateOf - returns the states of the alarms in the rule, by their ids in the template. */
export function compositeState({ id, Properties }: Resource, stateOf: (id: string) => AlarmState): "OK" | "ALARM" {
  const rule = textOf(Properties.AlarmRule);
  const words = rule.replaceAll(/(ALARM|OK|INSUFFICIENT_DATA)\("<(\w+)\.Arn>"\)/g, (_, state: string, of: string) =>
    String(stateOf(of) === state),
  );
  const expression = words.replaceAll("AND", "&&").replaceAll("OR", "||").replaceAll("NOT", "!");
  if (!/^(true|false|&&|\|\||!|[() ])+$/.test(expression))
    throw new Error(`${id}: the rule ${rule} is not played here`);
  return isTrue(expression) ? "ALARM" : "OK";
}

/** Evaluates an expression of `true`, `false`, `!`, `&&`, `||` and brackets. */
function isTrue(text: string): boolean {
  let left = text.replaceAll(" ", "");
  for (;;) {
    const next = left
      .replaceAll("(true)", "true")
      .replaceAll("(false)", "false")
      .replaceAll("!true", "false")
      .replaceAll("!false", "true")
      .replaceAll(/(true|false)&&(true|false)/g, (_, a: string, b: string) => String(a === "true" && b === "true"))
      .replaceAll(/(?<!&&)(true|false)\|\|(true|false)(?!&&)/g, (_, a: string, b: string) =>
        String(a === "true" || b === "true"),
      );
    if (next === left) break;
    left = next;
  }
  if (left !== "true" && left !== "false") throw new Error(`${text} comes to ${left}`);
  return left === "true";
}

function periodOf({ id, Properties }: Resource): number {
  const alarm = Properties as unknown as AlarmDefinition;
  const periods = [alarm.Period, ...(alarm.Metrics ?? []).map(({ MetricStat }) => MetricStat?.Period)];
  const [seconds, ...others] = new Set(periods.filter((period) => period !== undefined));
  if (seconds === undefined || others.length > 0) throw new Error(`${id} has periods of ${[...periods].join(", ")}`);
  return seconds;
}

/** The value of an alarm's metric over the samples of one period. */
function valueIn({ id, Properties }: Resource, samples: readonly Sample[]): Value {
  const alarm = Properties as unknown as AlarmDefinition;
  if (alarm.MetricName !== undefined)
    return statisticOf(id, alarm.Statistic, valuesOf(samples, metricName(alarm as unknown as TemplateMetric)));
  const metrics = new Map((alarm.Metrics ?? []).map((metric) => [metric.Id, metric]));
  const measured = (name: string): Value => {
    const { Expression, MetricStat } = metrics.get(name) ?? {};
    if (Expression !== undefined) return evaluateMath(Expression, measured);
    if (MetricStat === undefined) throw new Error(`${id} has no metric ${name}`);
    return statisticOf(id, MetricStat.Stat, valuesOf(samples, metricName(MetricStat.Metric)));
  };
  const returned = [...metrics.values()].filter(({ ReturnData = true }) => ReturnData);
  const [only] = returned;
  if (only === undefined || returned.length > 1)
    throw new Error(`${id} returns ${returned.length} series; an alarm has one`);
  return measured(only.Id);
}

function valuesOf(samples: readonly Sample[], { namespace, name, dimensions }: MetricName): readonly number[] {
  const names = Object.keys(dimensions);
  return samples.flatMap((sample) =>
    sample.namespace === namespace &&
    sample.name === name &&
    Object.keys(sample.dimensions).length === names.length &&
    names.every((each) => sample.dimensions[each] === dimensions[each])
      ? [sample.value]
      : [],
  );
}

function statisticOf(id: string, statistic: string | undefined, values: readonly number[]): Value {
  if (values.length === 0) return undefined;
  if (statistic === "Sum") return values.reduce((sum, value) => sum + value, 0);
  if (statistic === "Maximum") return Math.max(...values);
  throw new Error(`${id} asks for ${statistic}, which is not played here`);
}

function isBreaching(value: number, { ComparisonOperator, Threshold }: AlarmDefinition): boolean {
  if (ComparisonOperator === "GreaterThanThreshold") return value > Threshold;
  if (ComparisonOperator === "LessThanThreshold") return value < Threshold;
  throw new Error(`${ComparisonOperator} is not played here`);
}

function metricName({ Namespace, MetricName, Dimensions = [] }: TemplateMetric): MetricName {
  const dimensions = Object.fromEntries(Dimensions.map(({ Name, Value }) => [Name, textOf(Value)]));
  return { namespace: Namespace, name: MetricName, dimensions };
}
