/** The dashboards of the stacks in CloudWatch, by the bodies that CloudWatch gets. */
import { describe, expect, test } from "vitest";
import { functionNamed, ofType, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();

interface Widget {
  readonly type: string;
  readonly width: number;
  readonly properties: {
    readonly title: string;
    readonly endpoint?: string;
    readonly params?: unknown;
    readonly updateOn?: unknown;
    readonly metrics?: readonly (readonly unknown[])[];
  };
}

function boardOf(name: "Fleet" | "Operations"): readonly Widget[] {
  const found = ofType(resources, "AWS::CloudWatch::Dashboard").find(({ id }) => id.startsWith(`Wiring${name}`));
  const { widgets } = JSON.parse(textOf(found?.Properties.DashboardBody)) as { readonly widgets: readonly Widget[] };
  return widgets;
}

describe("the dashboard of the fleet", () => {
  const widgets = boardOf("Fleet");

  test("the dashboard's function draws the fleet and its rollouts again with each refresh and each change of the time range", () => {
    const custom = widgets.filter(({ type }) => type === "custom");
    expect(custom.map(({ properties }) => properties.params)).toEqual([{ path: "/" }, { path: "/timeline" }]);
    for (const { properties, width } of custom) {
      expect(properties.endpoint).toBe(`<${functionNamed(resources, "dashboard").id}.Arn>`);
      expect(properties.updateOn).toEqual({ refresh: true, resize: false, timeRange: true });
      expect(width).toBe(24);
    }
  });

  test("every graph shows the rollouts, on an axis of their own", () => {
    const graphs = widgets.filter(({ type }) => type === "metric");
    expect(graphs.length).toBeGreaterThan(3);
    for (const { properties } of graphs) {
      const last = properties.metrics?.at(-1)?.[0] as { readonly expression?: string; readonly yAxis?: string };
      expect(last.expression, properties.title).toContain('MetricName="RolloutPhase"');
      expect(last.yAxis, properties.title).toBe("right");
    }
  });
});

test("the dashboard of operations shows the timer, queues, functions, throttles, dead letters and cost", () => {
  const titles = boardOf("Operations").map(({ properties }) => properties.title);
  for (const about of ["Tick", "Queues", "errors", "throttles", "Dead letters", "Cost"])
    expect(titles.filter((title) => title.includes(about))).not.toEqual([]);
  const metrics = JSON.stringify(boardOf("Operations"));
  for (const { id } of ofType(resources, "AWS::Lambda::Function")) expect(metrics, id).toContain(id);
  for (const { id } of ofType(resources, "AWS::SQS::Queue"))
    if (!id.includes("EveryMinute")) expect(metrics, id).toContain(id);
});
