/** The output of commands while a rollout waits, fails or reaches no cluster. */
import { describe, expect, test } from "vitest";
import { ourApiVersion } from "#shared/fleet/kinds/metadata.ts";
import { groupDocument, yaml } from "#test/support/e2e-documents.ts";
import { namespace, type World } from "#test/support/e2e-world.ts";
import { storyTargets } from "#test/support/fleet-targets.ts";
import { type WebSetup, webWorldOn } from "#test/support/web-world.ts";
import { openWorldCli, type WorldCli } from "#test/support/world-cli.ts";

/** The namespace exists and stays, so no controller has to finish its deletion. */
function config(name: string): string {
  return yaml({ apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace: "default" }, data: { of: name } });
}

const files = { "deploy/settings.yaml": config("settings"), "own/extra.yaml": config("extra") };
const source = { paths: ["deploy", "own"] };
const template = { name: "app", source: "app", path: "own" };

function syncDocument(name: string, spec: Readonly<Record<string, unknown>>) {
  return { apiVersion: ourApiVersion, kind: "Sync", metadata: { name, namespace }, spec: { source: "app", ...spec } };
}

/** The proposed next commands without their explanations, and without commands that have a word to fill in. */
function commandsIn(text: string): readonly string[] {
  const found = text.matchAll(/\bstarling ([a-z]+ [^\n;)]*?)(?= {3}|[;\n)]|$)/gm);
  const commands = [...found].map(([, command = ""]) => command.trim());
  return [...new Set(commands)].filter((command) => !/\b[A-Z]{4,}\b|--watch| -w\b/.test(command));
}

describe.each(storyTargets)("on $name", (fleet) => {
  const inWebWorld = webWorldOn(fleet);
  const withCli = (setup: WebSetup, use: (cli: WorldCli, world: World, commit: string) => Promise<void>) =>
    inWebWorld(setup, async (world, commit) => {
      const cli = openWorldCli(world);
      try {
        await use(cli, world, commit);
      } finally {
        cli.close();
      }
    });

  test("reconcile --wait ends when the workers have checked, and not before", () =>
    withCli({ rings: { all: 2 }, files, source }, async (cli, world, commit) => {
      await world.untilInSync("web", commit);
      const check = Promise.withResolvers<"pass">();
      world.fleet.intercept(({ cluster, phase }) =>
        cluster === "all-2" && phase === "before" ? check.promise : "pass",
      );
      let ended = false;
      const waiting = cli.run("reconcile sg/web --wait").finally(() => {
        ended = true;
      });
      await world.waitFor("the other cluster was looked at", async () => {
        const observed = (await world.sync("all-1", "web.app"))?.status.observed;
        return observed?.handledReconcile === 1;
      });
      expect((await cli.run("get sg web")).out).toMatch(/ Reconciling /);
      expect(ended).toBe(false);
      check.resolve("pass");
      expect(await waiting).toMatchObject({
        code: 0,
        out: "syncgroup/web reconcile requested\nsyncgroup/web Complete\n",
      });
      for (const name of ["all-1", "all-2"])
        expect((await world.sync(name, "web.app"))?.status.observed?.handledReconcile).toBe(1);
    }));

  test("reconcile --wait of an unhealthy group reports that after the check", () =>
    withCli({ rings: { all: 2 }, files, source, rollout: { maxUnreachable: 1 } }, async (cli, world, commit) => {
      await world.untilInSync("web", commit);
      const refused = { status: 403, body: { kind: "Status", reason: "Forbidden", code: 403 } };
      world.fleet.intercept(({ cluster }) => (cluster === "all-2" ? refused : "pass"));
      expect(await cli.run("reconcile sg/web --wait")).toMatchObject({
        code: 1,
        out: expect.stringMatching(
          /^syncgroup\/web reconcile requested\nsyncgroup\/web Degraded 1 of 2 clusters ready; all-2 (?:does not answer|failed) \(since .*\n$/,
        ),
      });
    }));

  test("a group or Sync that reaches no cluster is neither Complete nor Ready", () =>
    withCli({ rings: { all: 1 }, files, source }, async (cli, world, commit) => {
      await world.untilInSync("web", commit);
      const group = (name: string, clusters: Parameters<typeof groupDocument>[1]["clusters"]) =>
        groupDocument(name, { clusters, templates: [template] });
      const applied = await cli.run(
        "apply -f -",
        [
          group("nobody", { selector: { matchLabels: { ring: "none" } } }),
          group("typo", { names: ["al-1"] }),
          group("half", { names: ["all-1", "al-2"] }),
          syncDocument("lost", { cluster: "al-3", path: "own" }),
        ]
          .map(yaml)
          .join(""),
      );
      expect(applied).toMatchObject({ code: 0, out: expect.stringContaining("syncgroup/nobody created\n") });
      for (const warning of [
        "warning: syncgroup/nobody: no registered cluster matches ring=none yet: nothing is rolled out until one does",
        "warning: syncgroup/typo: cluster al-1 is not registered yet: nothing is rolled out there until it is",
        "warning: syncgroup/half: cluster al-2 is not registered yet: nothing is rolled out there until it is",
        "warning: sync/lost: cluster al-3 is not registered yet: nothing is rolled out there until it is",
      ])
        expect(applied.err).toContain(`${warning}\n`);
      const wait = (object: string) => cli.run(`reconcile ${object} --wait`);
      expect(await wait("sg/nobody")).toMatchObject({
        code: 1,
        out: expect.stringMatching(/\nsyncgroup\/nobody NoClusters no registered cluster matches ring=none; /),
      });
      expect(await wait("sg/typo")).toMatchObject({
        code: 1,
        out: expect.stringMatching(/\nsyncgroup\/typo ClusterNotFound cluster al-1 is not registered; /),
      });
      expect(await wait("sg/half")).toMatchObject({
        code: 1,
        out: expect.stringMatching(
          /\nsyncgroup\/half Degraded 1 of 1 clusters ready; cluster al-2 is not registered\n/,
        ),
      });
      expect(await wait("sync/lost")).toMatchObject({
        code: 1,
        out: expect.stringMatching(/\nsync\/lost ClusterNotFound cluster al-3 is not registered; /),
      });
      expect((await cli.run("rollout status nobody")).code).toBe(1);
      expect((await cli.run("rollout status nobody -w")).code).toBe(1);
      const listed = await cli.run("get sg");
      expect(listed.out).not.toMatch(/^(nobody|typo|half) .* (Complete|Ready) /m);
      expect(listed.err).toMatch(/needs? attention: /);
      const syncs = await cli.run("get syncs");
      expect(syncs.out).toMatch(/^lost +al-3 .* ClusterNotFound /m);
      expect(syncs.err).toContain("1 needs attention: lost on al-3 clusternotfound");

      await world.join({ name: "al-1" });
      await world.waitFor("it has its cluster", async () => (await world.group("typo")).status.state === "Complete");
    }));

  test("a cluster that a halted rollout did not reach in its stage is not Ready, and shows the desired revision", () =>
    withCli(
      { rings: { canary: 2, broad: 1 }, files, source, rollout: { maxConcurrent: 1 } },
      async (cli, world, commit) => {
        await world.untilInSync("web", commit);
        const short = commit.slice(0, 7);
        expect((await cli.run("get clusters")).out).toMatch(/^canary-2 .* Ready .* 1\/1 /m);
        const next = await world.push("app", { "deploy/settings.yaml": config("Not_A_Name") });
        await world.waitFor("it is halted", async () => (await world.group("web")).status.state === "Halted");
        const desired = `runs main@sha1:${short}, desired main@sha1:${next.slice(0, 7)}: the rollout is halted`;
        const syncs = await cli.run("get syncs -o wide");
        expect(syncs.out).toMatch(new RegExp(`^web\\.app +canary-2 .* OutOfSync .* ${desired}$`, "m"));
        expect(syncs.out).toMatch(new RegExp(`^web\\.app +canary-1 +main@sha1:${short} +0/1 +Failed `, "m"));
        expect(syncs.err).toContain("1 needs attention: web.app on canary-1 failed");
        const names = async (state: string) =>
          (await cli.run(`get syncs --group web --state ${state} --no-headers -q`)).out;
        expect(await names("OutOfSync")).toMatch(/^web\.app +canary-2 /);
        // A revision that only an earlier stage has tried is not desired there.
        expect(await names("Ready")).toMatch(/^web\.app +broad-1 /);
        const clusters = await cli.run("get clusters");
        expect(clusters.out).toMatch(/^canary-1 .* Degraded .* 0\/1 .* 1 Failed: shop\/web\.app$/m);
        expect(clusters.out).toMatch(/^canary-2 .* OutOfSync .* 0\/1 .* 1 OutOfSync: shop\/web\.app$/m);
        expect(clusters.out).toMatch(/^broad-1 .* Ready .* 1\/1 /m);
        const page = (await cli.run("describe sync/web.app --cluster canary-2")).out;
        expect(page).toMatch(
          new RegExp(`^Out of sync: +main@sha1:${next.slice(0, 7)} +by web-2: the rollout is halted$`, "m"),
        );
        expect(page).toMatch(/^Status: +OutOfSync /m);
        expect((await cli.run("describe cluster/canary-2")).out).toMatch(/^Status: +OutOfSync /m);

        await world.push("app", { "deploy/settings.yaml": config("settings") });
        await world.waitFor("it is over", async () => (await world.group("web")).status.state === "Complete");
        expect((await cli.run("get syncs --no-headers -q")).out).not.toMatch(/OutOfSync|Failed/);
        expect((await cli.run("get clusters --no-headers -q")).out).not.toMatch(/OutOfSync|Degraded/);
      },
    ));

  test("a Sync that cannot be rendered is listed among those that need attention", () =>
    withCli({ rings: { all: 1 }, files, source }, async (cli, world, commit) => {
      await world.untilInSync("web", commit);
      await world.apply(
        syncDocument("astray", { cluster: "all-1", path: "nowhere" }),
        syncDocument("fine", { cluster: "all-1", path: "own" }),
      );
      await world.waitFor("it is known", async () => / Halted /.test((await cli.run("get syncs")).out));
      const { out, err } = await cli.run("get syncs -o wide");
      expect(out).toMatch(/^astray +all-1 .* Halted .*RenderFailed: .*nowhere/m);
      expect(err).toContain("1 needs attention: astray on all-1 halted");
      await world.apply(syncDocument("fine", { cluster: "all-1", path: "nowhere" }));
      await world.waitFor("the other one is not ready either", async () =>
        /^fine .* Halted /m.test((await cli.run("get syncs")).out),
      );
    }));

  test("every command that is printed as a next step can be typed", () =>
    withCli(
      { rings: { canary: 1, broad: 1 }, files, source, rollout: { maxUnreachable: 0 } },
      async (cli, world, commit) => {
        const collect = async () => {
          for (const kind of ["sources", "clusters", "syncgroups", "syncs", "rollouts"]) {
            const { out } = await cli.run(`get ${kind} -o name`);
            await cli.run(`get ${kind} -o wide`);
            for (const name of new Set(out.split("\n").filter((line) => line !== ""))) {
              if (kind === "syncs" && name.includes(".")) {
                for (const cluster of ["canary-1", "broad-1"]) await cli.run(`describe ${name} --cluster ${cluster}`);
                await cli.run(`describe ${name}`);
              } else await cli.run(`describe ${name}`);
              if (kind === "syncgroups" || kind === "syncs") await cli.run(`rollout status ${name} --all`);
              if (kind === "syncgroups") await cli.run(`delete ${name} -n ${namespace}`);
            }
          }
        };
        await world.untilInSync("web", commit);
        await collect();
        await world.apply(
          syncDocument("astray", { cluster: "canary-1", path: "nowhere" }),
          syncDocument("lost", { cluster: "nobody", path: "own" }),
          syncDocument("early", { cluster: "canary-1", path: "own", source: "later" }),
          groupDocument("none", { clusters: { selector: { matchLabels: { ring: "x" } } }, templates: [template] }),
          groupDocument("unrendered", { clusters: { all: true }, templates: [{ ...template, path: "nowhere" }] }),
        );
        await world.push("app", { "deploy/settings.yaml": config("Not_A_Name") });
        await world.waitFor("they are halted", async () => {
          const groups = [await world.group("web"), await world.group("unrendered")];
          return groups.every(({ status }) => status.state === "Halted");
        });
        await collect();
        await cli.run("suspend sg/web --reason lunch");
        await cli.run("reconcile sg/web");
        await collect();
        await cli.run("resume sg/web");
        for (const object of ["sync/lost", "sg/none", "source/app"]) await cli.run(`reconcile ${object} --wait`);
        await cli.run("delete source/app");
        await cli.run("delete cluster/broad-1");
        await cli.run("get source/none");
        world.fleet.intercept(({ cluster }) => (cluster === "canary-1" ? "reset" : "pass"));
        await cli.run("delete sg/web --yes");
        await world.waitFor("it waits", async () => / does not answer/.test((await cli.run("get sg web -o wide")).out));
        await collect();

        const printed = commandsIn(cli.said.map(({ out, err }) => `${out}\n${err}`).join("\n"));
        expect(printed.length).toBeGreaterThan(15);
        const kinds = new Set(printed.map((command) => command.split(" ")[0]));
        expect([...kinds].sort()).toEqual(["delete", "describe", "get", "reconcile", "resume", "rollout"]);
        // Commands that delete come last, because the others need the objects.
        const order = (command: string) => Number(command.includes("--yes"));
        for (const command of printed.toSorted((a, b) => order(a) - order(b))) {
          const ran = await cli.run(command.split(" "));
          expect(ran.code, `${command}: ${ran.err}`).toBeLessThan(2);
          expect(ran.err, command).not.toMatch(/is not on|is on no|does not exist|has no rollout|no \S+ found/);
        }
      },
    ));

  test("a deletion that waits for a never reached cluster says so, and says how to continue without it", () =>
    withCli({ rings: { all: 1 }, files, source, rollout: { maxUnreachable: 0 } }, async (cli, world, commit) => {
      await world.untilInSync("web", commit);
      world.fleet.intercept(({ cluster }) => (cluster === "late" ? "reset" : "pass"));
      await world.join({ name: "late", labels: { ring: "all" } });
      await world.waitFor("it does not answer", async () => {
        return (await world.sync("late", "web.app"))?.status.state === "Unreachable";
      });
      await cli.run("delete sg/web --yes --reason gone");
      await world.waitFor("it says for whom it waits", async () => {
        const { out } = await cli.run("get sg web -o wide");
        return /Deleting .*; late does not answer, and the deletion waits; /.test(out);
      });
      const { out } = await cli.run("get sg web -o wide");
      const [, remedy = ""] = /to go on without: starling (delete cluster\/late --cascade=orphan)/.exec(out) ?? [];
      expect((await cli.run(`${remedy} --yes`)).code).toBe(0);
      await world.waitFor("it is gone", async () => (await cli.run("get sg web")).code === 1);
    }));
});
