/** Extracts metrics from log lines of functions, as CloudWatch does. */
import type { Sample } from "#test/support/alarm-state.ts";

export type EmbeddedLine = Readonly<Record<string, unknown>> & {
  readonly _aws?: {
    readonly CloudWatchMetrics: readonly {
      readonly Namespace: string;
      readonly Dimensions: readonly (readonly string[])[];
      readonly Metrics: readonly { readonly Name: string }[];
    }[];
  };
};

/**
 * @param atSeconds - the assumed time of each line, because functions with a faster clock write more lines. @param
 * nameThere - the name of a dimension's value in the template.
 */
export function samplesIn(
  lines: readonly EmbeddedLine[],
  { atSeconds, nameThere }: { readonly atSeconds: number; readonly nameThere: (value: string) => string },
): readonly Sample[] {
  return lines.flatMap((line) =>
    (line._aws?.CloudWatchMetrics ?? []).flatMap(({ Namespace, Dimensions, Metrics }) =>
      Metrics.flatMap(({ Name }) =>
        Dimensions.map((names) => ({
          namespace: Namespace,
          name: Name,
          dimensions: Object.fromEntries(names.map((name) => [name, nameThere(String(line[name]))])),
          atSeconds,
          value: Number(line[Name]),
        })),
      ),
    ),
  );
}
