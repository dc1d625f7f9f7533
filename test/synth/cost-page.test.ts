/** The costs that docs/cost.md and docs/tasks/install.md name for parts of the stacks are those of the parts in the templates. */
import { readFileSync } from "node:fs";
import { Template } from "aws-cdk-lib/assertions";
import { expect, test } from "vitest";
import { synthesize } from "#local/template/synthesize.ts";
import { type Standing, standingOf } from "#test/bench/idle-bill.ts";
import { monthHours, prices } from "#test/bench/prices.ts";
import { resourcesIn, synthesizeTemplates } from "#test/synth/synthesized.ts";
import { homeOfZones } from "#test/synth/zones.ts";

const page = readFileSync("docs/cost.md", "utf8");

/** The numbers in the row whose first cell begins so. */
function rowOf(text: string, start: string): readonly number[] {
  const [row, ...others] = text.split("\n").filter((line) => line.startsWith(`| ${start}`));
  if (row === undefined || others.length > 0) throw new Error(`${others.length + 1} rows begin with: ${start}`);
  return numbersIn(row);
}

function numbersIn(row: string): readonly number[] {
  return row.split("|").slice(2, -1).map(Number);
}

/** The rows of the table below this heading, without the last one, and the last one: the sum. */
function tableBelow(heading: string): {
  readonly items: readonly (readonly number[])[];
  readonly sum: readonly number[];
} {
  const [, below = ""] = page.split(`${heading}\n`);
  const [table = ""] = /(\|.*\n)+/.exec(below) ?? [];
  const rows = table.trimEnd().split("\n").slice(2).map(numbersIn);
  return { items: rows.slice(0, -1), sum: rows.at(-1) ?? [] };
}

const cents = (usd: number) => Math.round(usd * 100) / 100;
const sumOf = (rows: readonly (readonly number[])[], column: number) =>
  rows.reduce((sum, row) => sum + (row[column] ?? 0), 0);

function pollsOf({ standardQueues, fifoQueues }: Pick<Standing, "standardQueues" | "fifoQueues">): number {
  const polls = 5 * monthHours * 180;
  return cents(polls * (standardQueues * prices.sqsRequest + fifoQueues * prices.sqsFifoRequest));
}

const installed = standingOf((await synthesizeTemplates()).resources);

test("polls, alarms and dashboards of an installation cost what the page says", () => {
  expect(rowOf(page, "polls of six standard queues and one FIFO queue")[0]).toBe(pollsOf(installed));
  const { alarmMetrics, compositeAlarms, dashboards } = installed;
  expect(rowOf(page, `alarms, which watch ${alarmMetrics} metrics, and one composite alarm`)[0]).toBe(
    cents(alarmMetrics * prices.alarmMetric + compositeAlarms * prices.compositeAlarm),
  );
  expect(rowOf(page, "two dashboards")[0]).toBe(dashboards * prices.dashboard);
});

test("the queues and the alarms of a zone cost what the page says", async () => {
  const zoned = standingOf((await synthesizeTemplates({ zones: '[{"name":"fixed","vpc":{}}]' })).resources);
  const queues = zoned.standardQueues - installed.standardQueues;
  expect(rowOf(page, "polls of two more queues")[0]).toBe(pollsOf({ standardQueues: queues, fifoQueues: 0 }));
  const metrics = zoned.alarmMetrics - installed.alarmMetrics;
  expect(rowOf(page, `alarms, which watch ${metrics} metrics more`)[0]).toBe(cents(metrics * prices.alarmMetric));
});

test("the alarms and the dashboard of a zone in another region cost what the page says", async () => {
  const zone = { name: "far", region: "eu-west-1", clusterNames: ["eu-*"] };
  const stacks = await synthesize({ zones: JSON.stringify([zone]), home: JSON.stringify(homeOfZones) });
  const partsOf = (stack: string) => standingOf(resourcesIn(Template.fromJSON(stacks[stack] as object)));
  const [there, here] = [partsOf("starling-zone-far"), partsOf("starling-control")];
  const metrics = there.alarmMetrics + here.alarmMetrics - installed.alarmMetrics;
  const usd = cents(metrics * prices.alarmMetric + there.dashboards * prices.dashboard);
  expect(page).toContain(`a dashboard and alarms that watch ${metrics} metrics: ${usd.toFixed(2)} a month`);
});

test.each([
  ["## What it comes to", 3],
  ["### One zone with fixed addresses", 2],
])("the last row of the table below %s is the sum of the others", (heading, columns) => {
  const { items, sum } = tableBelow(heading);
  // The last row of a zone is the one with two gateways, and the row before it the sum.
  const isOfZone = heading.startsWith("###");
  const [rows, total = []] = isOfZone ? [items.slice(0, -1), items.at(-1)] : [items, sum];
  for (let column = 0; column < columns; column++)
    expect(Math.abs(sumOf(rows, column) - (total[column] ?? 0)), `column ${column}`).toBeLessThan(0.02);
});

test("the estimate for thirty clusters is interpolated from the measurements for a hundred and for a thousand", () => {
  const install = readFileSync("docs/tasks/install.md", "utf8");
  const [hundred = 0, thousand = 0] = tableBelow("## What it comes to").sum;
  const [each, fixed] = [(thousand - hundred) / 900, hundred - (thousand - hundred) / 9];
  expect(rowOf(install, "what grows with the number of clusters")[0]).toBe(cents(30 * each));
  expect(rowOf(install, "what does not grow")[0]).toBe(cents(fixed));
  const [rollouts = 0] = rowOf(install, "600 rollouts");
  expect(rowOf(install, "all")[0]).toBe(cents(cents(30 * each) + cents(fixed) + rollouts));
});
