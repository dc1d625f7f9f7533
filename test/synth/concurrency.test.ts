/** The functions' concurrency fits into the account's quota, and the synthesis reports the quota to request. */
import { App, Stack } from "aws-cdk-lib";
import { describe, expect, test } from "vitest";
import { concurrency, sayWhichQuota, sayWhichQuotaOfZone } from "#infra/concurrency.ts";
import { readSettings } from "#infra/read-settings.ts";
import { defined } from "#shared/base/defined.ts";
import { functionNamed, ofType, type Synthesized, synthesizeTemplates, textOf } from "#test/synth/synthesized.ts";

type Context = Readonly<Record<string, string>>;

/** Zones of this many clusters each; none stands for a fair share. */
const zonesOf = (...clusters: readonly (number | undefined)[]) =>
  JSON.stringify(clusters.map((each, index) => ({ name: `z${index + 1}`, vpc: {}, ...defined({ clusters: each }) })));

const concurrencyOf = (context: Context) => concurrency(readSettings(context));

const fed = ["resolve", "rollout", "render", "apply", "applySlow", "report"] as const;
/** Functions with a queue or two, in the order of the bounds below. */
const fedFunctions = ["resolve", "rollout", "render", "apply", "report"] as const;

/** The maximum concurrency of each queue's event source, in flow order. */
function boundsOf({ resources }: Synthesized): readonly number[] {
  const mappings = ofType(resources, "AWS::Lambda::EventSourceMapping");
  return fedFunctions.flatMap((folder) => {
    const own = `<${functionNamed(resources, folder).id}>`;
    return mappings
      .filter(({ Properties }) => textOf(Properties.FunctionName) === own)
      .map(({ Properties }) => (Properties.ScalingConfig as { MaximumConcurrency: number }).MaximumConcurrency);
  });
}

/** A build runs while a render waits for it. */
function mostAtOnce([resolve = 0, rollout = 0, render = 0, ...others]: readonly number[]): number {
  return resolve + rollout + render + render + others.reduce((sum, bound) => sum + bound, 0);
}

function reservations({ resources }: Synthesized): Readonly<Record<string, unknown>> {
  const reserved = ofType(resources, "AWS::Lambda::Function").filter(
    ({ Properties }) => Properties.ReservedConcurrentExecutions !== undefined,
  );
  return Object.fromEntries(reserved.map(({ id, Properties }) => [id, Properties.ReservedConcurrentExecutions]));
}

function said(context: Context): readonly string[] {
  const stack = new Stack(new App(), "Any");
  sayWhichQuota(stack, concurrencyOf(context));
  return stack.node.metadata.filter(({ type }) => type === "aws:cdk:info").map(({ data }) => String(data));
}

describe("in a new account, whose quota is ten, without settings", () => {
  test("each queue has the smallest concurrency that Lambda allows, and no function reserves any", async () => {
    const made = await synthesizeTemplates();
    expect(boundsOf(made)).toEqual([2, 2, 2, 2, 2, 2]);
    expect(reservations(made)).toEqual({});
  });

  test("functions that run for minutes leave two of the ten executions to functions that run for seconds", async () => {
    const made = await synthesizeTemplates();
    const [resolve = 0, , render = 0, , applySlow = 0] = boundsOf(made);
    const long = ["resolve", "render", "build", "apply"];
    const timeouts = ["api", "webhook", "tick", "rollout", "report", ...long].map((folder) => [
      folder,
      Number(functionNamed(made.resources, folder).Properties.Timeout) > 60,
    ]);
    expect(timeouts.filter(([, takesMinutes]) => takesMinutes).map(([folder]) => folder)).toEqual(long);
    expect(resolve + render + render + applySlow).toBe(8);
  });
});

describe("the template for a fleet and an account", () => {
  test.each<[Context, readonly number[], number | undefined]>([
    // Every queue has its full concurrency.
    [{ clusters: "100", concurrency: "1000" }, [2, 2, 2, 2, 2, 2], 2],
    [{ clusters: "1000", concurrency: "1000" }, [10, 20, 10, 20, 5, 5], 2],
    [{ clusters: "10000", concurrency: "1000" }, [10, 20, 10, 200, 50, 5], 2],
    [{ clusters: "1", concurrency: "102" }, [2, 2, 2, 2, 2, 2], 2],
    // Lambda keeps a hundred executions for functions that reserve none.
    [{ clusters: "1", concurrency: "101" }, [2, 2, 2, 2, 2, 2], undefined],
    // All queues are reduced by the same factor.
    [{ clusters: "1000", concurrency: "50" }, [5, 9, 5, 9, 3, 3], undefined],
    [{ clusters: "10000", concurrency: "50" }, [2, 3, 2, 19, 6, 2], undefined],
    // A setting for a queue holds, and the other queues are reduced by the same factor.
    [{ clusters: "1", concurrency: "1000", applyConcurrency: "40" }, [2, 2, 2, 40, 2, 2], 2],
    [
      { clusters: "1000", concurrency: "60", applyConcurrency: "34", reportConcurrency: "2" },
      [2, 3, 2, 34, 2, 2],
      undefined,
    ],
    // Lambda allows at most a thousand for an event source.
    [{ clusters: "100000", concurrency: "5000" }, [10, 20, 10, 1000, 250, 5], 2],
  ])(
    "%j: resolve, rollout, render, apply, its slow lane and report run %j at once",
    async (context, expected, reserved) => {
      const made = await synthesizeTemplates({ ...context });
      const bounds = boundsOf(made);
      expect(bounds).toEqual(expected);
      const tick = functionNamed(made.resources, "tick").id;
      expect(reservations(made)).toEqual(reserved === undefined ? {} : { [tick]: reserved });
      // The API, the webhook and the timer have the rest.
      expect(Number(context.concurrency) - mostAtOnce(bounds)).toBeGreaterThanOrEqual(10);
    },
  );
});

test("any quota is enough for every queue, and an account with room leaves ten executions to the API, webhook and timer", () => {
  for (const clusters of [1, 99, 100, 101, 500, 1000, 5000, 10_000, 50_000]) {
    for (let quota = 10; quota < 300; quota++) {
      const { bounds } = concurrencyOf({ clusters: `${clusters}`, concurrency: `${quota}` });
      const each = fed.map((queue) => bounds[queue]);
      expect(Math.min(...each)).toBeGreaterThanOrEqual(2);
      expect(mostAtOnce(each)).toBeLessThanOrEqual(Math.max(14, quota - 10));
    }
  }
});

describe("the workers of zones", () => {
  /** The maximum concurrency of the event sources of each zone's function, from the template. */
  async function boundsOfZones(context: Context): Promise<Readonly<Record<string, readonly number[]>>> {
    const { resources } = await synthesizeTemplates({ ...context });
    const mappings = ofType(resources, "AWS::Lambda::EventSourceMapping");
    const workers = ofType(resources, "AWS::Lambda::Function").flatMap(({ id, Properties }) => {
      const { Variables = {} } = (Properties.Environment ?? {}) as { Variables?: Record<string, unknown> };
      return typeof Variables.STARLING_ZONE === "string" ? [{ id, zone: Variables.STARLING_ZONE }] : [];
    });
    return Object.fromEntries(
      workers.map(({ id, zone }) => [
        zone,
        mappings
          .filter(({ Properties }) => textOf(Properties.FunctionName) === `<${id}>`)
          .map(({ Properties }) => (Properties.ScalingConfig as { MaximumConcurrency: number }).MaximumConcurrency),
      ]),
    );
  }

  test("each zone has bounds of its own, which follow from its clusters, and home has the rest of the fleet", async () => {
    const zones = zonesOf(5000, 1000);
    expect(await boundsOfZones({ clusters: "10000", concurrency: "1000", zones })).toEqual({
      home: [80, 20],
      z1: [100, 25],
      z2: [20, 5],
    });
  });

  test.each<[string, Context, Readonly<Record<string, readonly number[]>>]>([
    [
      "zones without a number share what is left with home",
      { clusters: "10000", concurrency: "1000", zones: zonesOf(4000, undefined, undefined) },
      { home: [40, 10], z1: [80, 20], z2: [40, 10], z3: [40, 10] },
    ],
    [
      "zones that reach the whole fleet leave home the least",
      { clusters: "1000", concurrency: "1000", zones: zonesOf(1000) },
      { home: [2, 2], z1: [20, 5] },
    ],
    [
      "a quota that is too small reduces all zones by the same share",
      { clusters: "10000", concurrency: "150", zones: zonesOf(5000) },
      { home: [43, 11], z1: [43, 11] },
    ],
    [
      "a setting for a queue holds for home only",
      { clusters: "1000", concurrency: "1000", zones: zonesOf(500), applyConcurrency: "3" },
      { home: [3, 3], z1: [10, 3] },
    ],
  ])("%s", (_, context, expected) => {
    const { boundsOfZone } = concurrencyOf(context);
    const found = Object.keys(expected).map((zone) => {
      const { apply, applySlow } = boundsOfZone(zone);
      return [zone, [apply, applySlow]];
    });
    expect(Object.fromEntries(found)).toEqual(expected);
  });

  test("all queues of all zones fit into any quota that has room for two executions of each", () => {
    for (const zones of [[undefined], [50, undefined], [1, 2, 3], Array.from({ length: 10 }, () => undefined)]) {
      for (const clusters of [10, 100, 1000, 50_000]) {
        for (let quota = 10; quota < 300; quota += 7) {
          const context = { clusters: `${Math.max(clusters, 53)}`, concurrency: `${quota}`, zones: zonesOf(...zones) };
          const { bounds, boundsOfZone } = concurrencyOf(context);
          const workers = zones.flatMap((_, index) => Object.values(boundsOfZone(`z${index + 1}`)));
          const every = [...fed.map((queue) => bounds[queue]), ...workers];
          expect(Math.min(...every)).toBeGreaterThanOrEqual(2);
          expect(mostAtOnce(every)).toBeLessThanOrEqual(Math.max(14 + 4 * zones.length, quota - 10));
        }
      }
    }
  });

  test("a zone that the settings do not have has no bounds", () => {
    expect(() => concurrencyOf({}).boundsOfZone("spoke")).toThrow("there is no zone spoke in the settings");
  });
});

describe("a synthesis says which quota to ask for", () => {
  test.each<[Context, string]>([
    [
      {},
      "100 clusters (setting clusters) need 102 concurrent executions of Lambda, but the account has 10 (setting concurrency): " +
        "functions wait for each other: the queues alone may run 16 at once; request them (Service Quotas, Lambda, " +
        "L-B99A9384), then raise setting concurrency",
    ],
    [
      { concurrency: "30" },
      "100 clusters (setting clusters) need 102 concurrent executions of Lambda, but the account has 30 (setting concurrency): " +
        "none can be reserved for the timer; request them",
    ],
    [
      { clusters: "1000" },
      "1000 clusters (setting clusters) need 102 concurrent executions of Lambda, but the account has 10 (setting concurrency): " +
        "2 clusters are worked on at once instead of 20; request them (Service Quotas, Lambda, L-B99A9384), " +
        "then raise setting concurrency",
    ],
    [
      { clusters: "10000", concurrency: "200" },
      "10000 clusters (setting clusters) need 315 concurrent executions of Lambda, but the account has 200 (setting " +
        "concurrency): 121 clusters are worked on at once instead of 200; request them (Service Quotas, Lambda, " +
        "L-B99A9384), then raise setting concurrency",
    ],
    [
      { clusters: "10000", concurrency: "315" },
      "10000 clusters (setting clusters) need 315 concurrent executions of Lambda; the account has 315 (setting concurrency)",
    ],
    [
      { zones: zonesOf(undefined, undefined) },
      "100 clusters (setting clusters) in 3 zones (home and setting zones) need 102 concurrent executions of Lambda, but " +
        "the account has 10 (setting concurrency): functions wait for each other: the queues alone may run 24 at once",
    ],
    [
      { clusters: "10000", concurrency: "200", zones: zonesOf(5000) },
      "10000 clusters (setting clusters) in 2 zones (home and setting zones) need 315 concurrent executions of Lambda, but " +
        "the account has 200 (setting concurrency): 120 clusters are worked on at once instead of 200",
    ],
  ])("%j", (context, expected) => expect(said(context)).toEqual([expect.stringContaining(expected)]));
});

test("a setting that gives a queue more than the account's quota is refused, with the quota to request", () => {
  expect(() => concurrencyOf({ applyConcurrency: "30", renderConcurrency: "4" })).toThrow(
    "setting renderConcurrency 4 and applyConcurrency 30: with the other queues, the API and the timer this needs 56 " +
      "concurrent executions of Lambda, but setting concurrency is 10; lower the setting, or request a larger " +
      "quota (Service Quotas, Lambda, L-B99A9384) and raise setting concurrency",
  );
  expect(concurrencyOf({ concurrency: "56", applyConcurrency: "30", renderConcurrency: "4" }).bounds).toEqual({
    resolve: 2,
    rollout: 2,
    render: 4,
    apply: 30,
    applySlow: 2,
    report: 2,
  });
});

describe("zones in other accounts and regions have quotas of their own", () => {
  const home = JSON.stringify({ account: "111122223333", region: "eu-central-1", table: "table", bucket: "blobs" });
  const zonesWith = (more: object) =>
    JSON.stringify([{ name: "spoke", region: "eu-west-1", clusterNames: ["eu-*"], clusters: 1000, ...more }]);

  test("the workers of such a zone take nothing of the quota of home, and home has only its own clusters to work on", () => {
    const alone = concurrencyOf({ clusters: "200", concurrency: "1000" });
    const both = concurrencyOf({
      clusters: "1200",
      concurrency: "1000",
      home,
      zones: zonesWith({ concurrency: 1000 }),
    });
    expect(both.bounds.apply).toBe(alone.bounds.apply);
    expect(both.lanes.now.filter(({ zone }) => zone === "spoke")).toEqual([]);
    expect(both.boundsOfZone("spoke")).toEqual({ apply: 20, applySlow: 5 });
    expect(both.elsewhere).toEqual([{ zone: "spoke", clusters: 1000, quota: 1000, quotaToAskFor: 25 }]);
  });

  test("they fit into the quota of their own account and region", () => {
    const { apply, applySlow } = concurrencyOf({
      ...{ clusters: "1200", concurrency: "1000", home },
      zones: zonesWith({ concurrency: 12 }),
    }).boundsOfZone("spoke");
    expect(apply + applySlow).toBeLessThanOrEqual(12);
    expect([apply, applySlow]).toEqual([8, 3]);
    const small = concurrencyOf({ clusters: "1200", concurrency: "1000", home, zones: zonesWith({}) });
    expect(small.boundsOfZone("spoke")).toEqual({ apply: 7, applySlow: 2 });
  });

  test("the synthesis says which quota to ask for there", () => {
    const stack = new Stack(new App(), "Any");
    const [own] = concurrencyOf({ clusters: "1200", concurrency: "1000", home, zones: zonesWith({}) }).elsewhere;
    if (own === undefined) throw new Error("no zone is elsewhere");
    sayWhichQuotaOfZone(stack, own);
    expect(JSON.stringify(stack.node.metadata)).toContain(
      "1000 clusters of zone spoke need 25 concurrent executions of Lambda in its account and region, but it has 10 (field",
    );
  });
});
