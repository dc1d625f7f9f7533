/**
 * Texts of a hostile cluster, a repository or a stolen role of a zone, through the API and the command: a line stays one line, and
 * no control character reaches the terminal. JSON and YAML keep the exact value.
 */
import { load } from "js-yaml";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { serveOnLoopback } from "#local/base/loopback-server.ts";
import type { Row } from "#shared/fleet/rows/row.ts";
import { type CliFixture, startCliFixtureOver } from "#test/integration/cli/cli-fixture.ts";
import type { MemoryBlobStore } from "#test/support/memory-blob-store.ts";
import type { MemoryTable } from "#test/support/memory-table.ts";
import { shownFleet } from "#test/support/shown-fleet.ts";

/** Erases the screen, sets the title, rings, returns to the begin of the line, reverses text, and writes lines of its own. */
const hostile = "<\u001b[2J\u001b]0;owned\u0007\u009b1m\r\t\u202e\u2028\nShown:       forged>";
const escaped = String.raw`<\u001b[2J\u001b]0;owned\u0007\u009b1m\u000d\t\u202e\u2028\nShown:       forged>`;
const harmless = `<${"x".repeat(escaped.length - 2)}>`;

/** Fields that clusters, repositories and the workers of a zone write. */
const foreign = new Set([
  ...["message", "reason", "object", "revision", "subject", "author", "version", "platform", "origin", "by"],
]);

function withTexts(value: unknown, text: string, field = ""): unknown {
  if (typeof value === "string") return foreign.has(field) ? `${value.split("<")[0]}${text}` : value;
  if (Array.isArray(value)) return value.map((each) => withTexts(each, text, field));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withTexts(each, text, name)]));
}

let cli: CliFixture;
let table: MemoryTable;
beforeAll(async () => {
  const fleet = await shownFleet(10, new Date());
  table = fleet.table as MemoryTable;
  cli = (await startCliFixtureOver(table, fleet.blobs as MemoryBlobStore)) as unknown as CliFixture;
}, 300_000);
afterAll(() => cli.stop());

async function writeTexts(text: string): Promise<void> {
  for (const row of table.all()) {
    const put = { ...(withTexts(row, text) as Row), version: (row as { version?: number }).version ?? 0 };
    await table.write([{ put: { ...put, version: put.version + 1 } as never }]);
  }
}

/** Line feeds are the command's own: the numbers of lines are compared. */
const controls = /[^\P{Cc}\n]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/u;
/** The colours of the command itself. None of them is in the hostile text. */
const ownSequences = ["[31m", "[32m", "[33m", "[0m"].map((code) => `\u001b${code}`);
const withoutOwn = (text: string) => ownSequences.reduce((left, own) => left.replaceAll(own, ""), text);

const cluster = "prod-euw1-0000";
const commands = [
  ...["get sources -A", "get clusters -o wide", "get syncgroups -A", "get syncs -A -o wide", "get rollouts -A"],
  ...["get versions -A", "get syncs -A -o custom-columns=NAME:.metadata.name,WHY:.status.observed.message"],
  ...["describe source/app -n platform", `describe cluster/${cluster}`, "describe syncgroup/app -n payments"],
  ...["describe rollout/app-2 -n payments", `describe sync/monitoring.t0 -n platform --cluster ${cluster}`],
  ...[`describe sync/app.t0 -n payments --cluster ${cluster}`, "rollout list -A", "rollout status app -n payments"],
  ...["rollout status ingress -n platform --all", "rollout status ingress -n platform --number 1"],
  ...[`tree cluster/${cluster} --objects --all`, "tree syncgroup/app -n payments --objects", "events -A"],
  ...["history ingress -n platform", "history source/app -n platform", "events syncgroup/app -n payments"],
];

test("each line of each command stays one line, and no control character reaches the terminal", {
  timeout: 180_000,
}, async () => {
  const lines = new Map<string, number>();
  await writeTexts(harmless);
  for (const line of commands) lines.set(line, (await cli.run(line)).out.split("\n").length);
  await writeTexts(hostile);
  const showing: string[] = [];
  for (const line of commands) {
    const { code, out, err } = await cli.run(line);
    expect({ line, controls: `${out}${err}`.match(controls)?.[0] }).toEqual({ line, controls: undefined });
    expect({ line, lines: out.split("\n").length }).toEqual({ line, lines: lines.get(line) });
    if (out.includes(escaped)) showing.push(line);
    const terminal = await cli.run(line, { outIsTerminal: true, columns: 100 });
    const shown = withoutOwn(`${terminal.out}${terminal.err}`);
    expect({ line, controls: shown.match(controls)?.[0] }).toEqual({ line, controls: undefined });
    expect(terminal.code).toBe(code);
  }
  expect(showing.length, `the text is in: ${showing.join(", ")}`).toBeGreaterThan(15);
});

test("a rollout that a terminal redraws in place has no control character of a row", { timeout: 60_000 }, async () => {
  await writeTexts(hostile);
  const interrupt = new AbortController();
  const { out, code } = await cli.run("rollout status ingress -n platform -w --all", {
    outIsTerminal: true,
    interrupted: interrupt.signal,
    // A rollout that has ended prints nothing before its last view.
    onOut: (printed) => printed !== "" && interrupt.abort(),
  });
  expect(code, "it is interrupted while it watches").toBe(130);
  expect(out).toContain(escaped.slice(0, 20));
  expect(withoutOwn(out)).not.toMatch(controls);
});

test("the program itself prints the texts like this, too", { timeout: 60_000 }, async () => {
  await writeTexts(hostile);
  const { out, code } = await cli.spawn(`describe cluster/${cluster}`);
  expect(code).toBe(0);
  expect(out).toContain(escaped);
  expect(out).not.toMatch(controls);
});

describe("data for programs", () => {
  const sync = `get sync/monitoring.t0 -n platform --cluster ${cluster}`;

  test("JSON and YAML keep the exact value, without control characters", async () => {
    await writeTexts(hostile);
    const [json, yaml] = [(await cli.run(`${sync} -o json`)).out, (await cli.run(`${sync} -o yaml`)).out];
    const value = JSON.parse(json);
    expect(value.status.conditions[0].message.endsWith(hostile)).toBe(true);
    expect(load(yaml)).toEqual(value);
    expect(json).not.toMatch(controls);
    expect(yaml).not.toMatch(controls);
  });
});

test("starling logs prints a hostile line as one line, and its JSON keeps the exact value", async () => {
  const at = new Date(Date.now() - 60_000).toISOString();
  cli.logLines.push({
    id: "1",
    at,
    function: "apply",
    fields: { level: "INFO", message: `said ${hostile}`, name: `a${hostile}`, more: { text: hostile } },
  });
  const { out } = await cli.run("logs cluster/prod-euw1-0000");
  expect(out).not.toMatch(controls);
  expect(out.trimEnd().split("\n")).toEqual([expect.stringContaining(`said ${escaped}`)]);
  const json = (await cli.run("logs cluster/prod-euw1-0000 -o json")).out;
  expect(json).not.toMatch(controls);
  expect(JSON.parse(json).items[0].message).toBe(`said ${hostile}`);
});

test.each(["", "-v "])("no message of a refusal controls the terminal, with flags %j", async (flags) => {
  const { port, stop } = await serveOnLoopback((_request, response) => {
    response.writeHead(400, { "content-type": "application/json" });
    response.end(JSON.stringify({ code: "BadRequest", message: hostile }));
  });
  try {
    const config = cli.write(
      "hostile.json",
      JSON.stringify({
        contexts: {
          here: {
            ...{ endpoint: `http://127.0.0.1:${port}`, region: "us-east-1", namespace: "payments" },
            credentials: { accessKeyId: "AKIA", secretAccessKey: "x" },
          },
        },
        current: "here",
      }),
    );
    const { code, out, err } = await cli.run(`${flags}get syncs`, { env: { STARLING_CONFIG: config } });
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("\\u001b[2J");
    expect(err).not.toMatch(/[^\P{Cc}\n\t]|\u202e|\u2028/u);
  } finally {
    await stop();
  }
});

test.each([
  [["get", `source/a${hostile}`]],
  [["describe", hostile, "-v"]],
  [[hostile]],
  [["get", "syncs", `--${hostile}`]],
  [["get", "syncs", "--context", hostile]],
  [["apply", "-f", hostile]],
])("an error about the argument in %j does not control the terminal", async (args) => {
  const { code, out, err } = await cli.run(args);
  expect(code).not.toBe(0);
  expect(`${out}${err}`).toContain("\\u001b[2J");
  expect(`${out}${err}`).not.toMatch(/[^\P{Cc}\n\t]|\u202e|\u2028/u);
});
