/** Freezes by hand: the commands that people type in a hurry, and their output. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { keys } from "#shared/fleet/rows/keys.ts";
import { type CliFixture, fleet, principal, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

let cli: CliFixture;
beforeEach(async () => {
  cli = await startCliFixture();
  const [, one = ""] = fleet.split("---");
  const two = one.replace("name: c1", "name: c2").replace("env: prod", "env: dev");
  expect((await cli.run("apply -f - -q", { input: `${fleet}---${two}` })).code).toBe(0);
});
afterEach(() => cli.stop());

const freezeState = () => cli.table.get(keys.freezeState);
/** Runs a command whose arguments have spaces in them. */
const words = (...line: readonly string[]) => cli.run(line);

describe("freeze", () => {
  test("freeze without a name or labels covers every cluster, and says how to end it", async () => {
    const { code, out, err } = await words("freeze", "--reason", "INC-4711: bad chart");
    expect(code).toBe(0);
    expect(out).toBe("freeze/freeze created: nothing is written to 2 clusters (all)\n");
    expect(err).toMatch(/^context here .*\n {2}next: starling thaw freeze {3}\(lifts the freeze\)\n$/);
    expect((await freezeState())?.freezes).toMatchObject([
      { name: "freeze", by: principal, reason: "INC-4711: bad chart" },
    ]);
    expect((await freezeState())?.freezes[0]).not.toHaveProperty("clusters");
    expect((await freezeState())?.freezes[0]).not.toHaveProperty("until");
  });

  test("freeze covers the clusters of its labels for the given time", async () => {
    const named = await cli.run("freeze inc-1 --clusters env=prod --until 2999-01-01T00:00:00Z --reason x");
    expect(named).toMatchObject({
      code: 0,
      out: "freeze/inc-1 created: nothing is written to 1 cluster (env=prod), until 2999-01-01T00:00:00.000Z\n",
    });
    expect((await freezeState())?.freezes).toMatchObject([
      { name: "inc-1", clusters: { text: "env=prod" }, until: "2999-01-01T00:00:00.000Z" },
    ]);
    const before = Date.now();
    await words("freeze", "inc-2", "--clusters", "env in (prod,dev)", "--until", "2h", "--reason", "x");
    const after = Date.now();
    const [, second] = (await freezeState())?.freezes ?? [];
    expect(second?.clusters?.text).toBe("env in (prod,dev)");
    expect(Date.parse(second?.until ?? "")).toBeGreaterThanOrEqual(before + 7_200_000);
    expect(Date.parse(second?.until ?? "")).toBeLessThanOrEqual(after + 7_200_000);
  });

  test("a repeated freeze changes nothing, and takes another end time over", async () => {
    await cli.run("freeze --reason x");
    const row = await freezeState();
    expect(await cli.run("freeze --reason y")).toMatchObject({
      code: 0,
      out: "freeze/freeze unchanged: nothing is written to 2 clusters (all)\n",
    });
    expect(await freezeState()).toEqual(row);
    expect(await cli.run("freeze --reason y --until 2999-01-01T00:00:00Z")).toMatchObject({
      code: 0,
      out: "freeze/freeze changed: nothing is written to 2 clusters (all), until 2999-01-01T00:00:00.000Z\n",
    });
  });

  test("freeze accepts labels that no cluster has, with a warning", async () => {
    const { code, out, err } = await cli.run("freeze --clusters env=none --reason x");
    expect(code).toBe(0);
    expect(out).toBe("freeze/freeze created: nothing is written to 0 clusters (env=none)\n");
    expect(err).toContain("warning: the freeze selects no registered cluster; `starling get clusters` lists them\n");
    expect((await cli.run("freeze other --clusters env=prod --reason x")).err).not.toContain("warning");
  });

  const wrong: readonly (readonly [string, readonly string[], string])[] = [
    [
      "no reason",
      ["freeze", "inc-1"],
      'error: a freeze needs a reason: --reason TEXT\n  next: starling freeze inc-1 --reason "why"',
    ],
    ["an empty reason", ["freeze", "--reason", ""], "reason: must say why, for whoever finds it"],
    [
      "no time",
      ["freeze", "--reason", "x", "--until", "soon"],
      'error: --until is "soon"; expected a time or a duration',
    ],
    [
      "a date alone",
      ["freeze", "--reason", "x", "--until", "2999-01-01"],
      'error: --until is "2999-01-01"; expected a time or a duration',
    ],
    [
      "an impossible time",
      ["freeze", "--reason", "x", "--until", "2999-13-01T00:00:00Z"],
      "expected a time or a duration",
    ],
    [
      "a time that has passed",
      ["freeze", "--reason", "x", "--until", "2020-01-01T00:00:00Z"],
      "until: 2020-01-01T00:00:00.000Z has passed; give a later time, or leave it out to freeze until a thaw",
    ],
    [
      "labels that are none",
      ["freeze", "--reason", "x", "--clusters", "a b"],
      'clusters: "a b" is no label requirement',
    ],
    ["no labels", ["freeze", "--reason", "x", "--clusters", ""], "leave it out for every cluster"],
    ["a name that is none", ["freeze", "INC 1", "--reason", "x"], 'a freeze cannot be called "INC 1"'],
    ["a name with a slash", ["freeze", "inc/1", "--reason", "x"], 'NAME is "inc/1"; expected only a-z, 0-9 and -'],
    ["a name to thaw with a slash", ["thaw", "inc/1"], 'NAME is "inc/1"; expected only a-z, 0-9 and -'],
    ["a path for a name", ["freeze", "..", "--reason", "x"], 'error: ".." cannot be the name of an object'],
    ["two names", ["freeze", "a", "b", "--reason", "x"], "freeze takes at most 1 argument without a flag; got 2"],
    ["an unknown flag", ["freeze", "--cluster", "c1", "--reason", "x"], "unknown flag --cluster"],
    ["a name to thaw that is none", ["thaw", "INC 1"], 'a freeze cannot be called "INC 1"'],
    ["two names to thaw", ["thaw", "a", "b"], "thaw takes at most 1 argument without a flag; got 2"],
  ];

  test.each(wrong)("freeze refuses %s, and freezes nothing", async (_, line, message) => {
    const { code, out, err } = await cli.run(line);
    expect(err).toContain(message);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(await freezeState()).toBeUndefined();
  });

  test("freeze refuses a name under which other clusters are frozen", async () => {
    await cli.run("freeze --clusters env=prod --reason x");
    const { code, err } = await cli.run("freeze --reason x");
    expect(code).toBe(1);
    expect(err).toMatch(
      /error: freeze freeze covers env=prod already; give this one another name\n {2}next: starling get freezes\n$/,
    );
    expect((await freezeState())?.freezes).toHaveLength(1);
  });
});

describe("thaw", () => {
  test("thaw names the other freezes that still hold clusters", async () => {
    await cli.run("freeze a --reason x");
    await cli.run("freeze c --clusters env=prod --reason x");
    expect((await cli.run("thaw a")).out).toBe(
      "freeze/a thawed: no longer frozen: 1 of 2 clusters (all); still frozen by freeze/c: 1\n",
    );
    expect((await cli.run("thaw c")).out).toBe("freeze/c thawed: no longer frozen: 1 cluster (env=prod)\n");
  });

  test("thaw ends the only freeze, or the named one, and records who did it", async () => {
    await cli.run("freeze a --reason x");
    expect(await cli.run("thaw --reason over")).toMatchObject({
      code: 0,
      out: "freeze/a thawed: no longer frozen: 2 clusters (all)\n",
    });
    await cli.run("freeze a --reason x");
    await cli.run("freeze b --clusters env=prod --reason x");
    expect(await cli.run("thaw b")).toMatchObject({
      code: 0,
      out: "freeze/b thawed: still frozen by freeze/a: 1 cluster (env=prod)\n",
      err: expect.stringContaining("next: starling thaw a "),
    });
    expect((await freezeState())?.freezes.map(({ name }) => name)).toEqual(["a"]);
    expect(cli.log.filter(({ verb }) => verb === "thaw")).toMatchObject([
      { principal: principal, name: "a", reason: "over" },
      { principal: principal, name: "b" },
    ]);
  });

  test("thaw asks for a name when there are several freezes, and changes nothing", async () => {
    await cli.run("freeze a --reason x");
    await cli.run("freeze b --reason x");
    const row = await freezeState();
    const { code, err } = await cli.run("thaw");
    expect(code).toBe(2);
    expect(err).toContain("error: there are several freezes: a, b; name one\n  next: starling thaw a\n");
    expect(await freezeState()).toEqual(row);
  });

  test("thaw refuses a name that no freeze has, and lists the freezes", async () => {
    const none = await cli.run("thaw");
    expect(none.code).toBe(1);
    expect(none.err).toContain("error: there is no freeze\n");
    expect((await cli.run("thaw inc-1")).err).toContain("error: there is no freeze inc-1; nothing is frozen\n");
    await cli.run("freeze a --reason x");
    const other = await cli.run("thaw inc-1");
    expect(other.code).toBe(1);
    expect(other.err).toContain("error: there is no freeze inc-1; there are a\n  next: starling get freezes\n");
  });
});

describe("get freezes", () => {
  test("get freezes prints on stderr that nothing is frozen", async () => {
    expect(await cli.run("get freezes")).toEqual({ code: 0, out: "", err: "there is no freeze\n" });
    expect(JSON.parse((await cli.run("get freezes -o json")).out)).toMatchObject({ kind: "FreezeList", items: [] });
  });

  test("get freezes shows the current freezes: clusters, end, author and reason", async () => {
    await words(
      "freeze",
      "inc-1",
      "--clusters",
      "env in (prod)",
      "--until",
      "2999-01-01T00:00:00Z",
      "--reason",
      "bad chart",
    );
    await cli.run("freeze all-of-them --reason x");
    const { out } = await cli.run("get freezes");
    const [head, ...lines] = out.trimEnd().split("\n");
    expect(head?.trimEnd()).toMatch(/^NAME +SELECTOR +CLUSTERS +AGE +UNTIL$/);
    expect(lines).toEqual([
      expect.stringMatching(/^inc-1 +env in \(prod\) +1 +\d+s +2999-01-01T00:00:00\.000Z +by ana: bad chart$/),
      expect.stringMatching(/^all-of-them +all +2 +\d+s +thawed +by ana: x$/),
    ]);
    expect((await cli.run("get freezes --no-headers")).out.trimEnd().split("\n")).toHaveLength(2);
    expect((await cli.run("get freezes -o name")).out).toBe("freeze/inc-1\nfreeze/all-of-them\n");
    for (const line of ["get freeze inc-1 -o name", "get freeze/inc-1 -o name", "get FREEZES inc-1 -o name"]) {
      expect(await cli.run(line)).toMatchObject({ code: 0, out: "freeze/inc-1\n" });
    }
    const one = JSON.parse((await cli.run("get freeze/inc-1 -o json")).out);
    expect(one).toMatchObject({ kind: "Freeze", metadata: { name: "inc-1" }, spec: { clusters: "env in (prod)" } });
    expect(JSON.parse((await cli.run("get freezes -o json")).out).items[0]).toEqual(one);
    const missing = await cli.run("get freezes inc-1 none");
    expect(missing).toMatchObject({ code: 1, out: "" });
    expect(missing.err).toContain("error: there is no freeze none\n  next: starling get freezes\n");
  });

  test("a cluster shows that it is frozen until it is thawed", async () => {
    await cli.run("freeze inc-1 --clusters env=prod --reason x");
    expect((await cli.run("get clusters")).out).toMatch(/c1 .*Frozen.*by ana: x; run `starling thaw inc-1`/);
    expect((await cli.run("get cluster c2")).out).not.toContain("Frozen");
    await cli.run("thaw");
    expect((await cli.run("get clusters")).out).not.toContain("Frozen");
  });
});
