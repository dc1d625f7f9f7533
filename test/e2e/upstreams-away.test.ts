/** A git host, a chart repository and a registry take connections and answer nothing, for two hours. */

import { expect, test } from "vitest";
import { quiet } from "#local/aws/wire/fault-options.ts";
import { startRegistryServer } from "#local/registry/registry-server.ts";
import { alarmWatch, untilSurveyed } from "#test/support/alarm-watch.ts";
import { startBlackHole } from "#test/support/black-hole.ts";
import { clockAhead } from "#test/support/clock-ahead.ts";
import { configMap, groupDocument, namespaceManifest, sourceDocument } from "#test/support/e2e-documents.ts";
import { namespace, startWorld } from "#test/support/e2e-world.ts";
import type { EmbeddedLine } from "#test/support/embedded-metrics.ts";
import { startFileServer } from "#test/support/file-server.ts";
import { handUserAgent } from "#test/support/kube-call.ts";
import { tarGz } from "#test/support/tar-gz.ts";
import { ofType, synthesizeTemplates } from "#test/synth/synthesized.ts";

const { resources } = await synthesizeTemplates();
const rate = 20;
const minute = 60_000;
/** Less than makes a row late for an alarm. */
const step = 8 * minute;
/** A host that is away costs each request a minute of the functions' time. */
const silentMs = minute / rate;
const others = 6;

const content = (color: string) => ({
  "deploy/settings.yaml": namespaceManifest + configMap("settings", { color }),
  "lib/lib.yaml": configMap("lib", { color }),
});

const chartOf = (version: string) =>
  tarGz([
    { name: "web/Chart.yaml", body: `apiVersion: v2\nname: web\nversion: ${version}\n` },
    { name: "web/templates/a.yaml", body: configMap("chart", { color: version }) },
  ]);

test("for two hours the upstreams are away: nothing changes in the fleet, what is stored can be pinned and joined, one alarm rings [source.away.fleet]", async () => {
  const lines: EmbeddedLine[] = [];
  const onLine = (_from: string, line: string) => void lines.push(JSON.parse(line) as EmbeddedLine);
  const { clock, pass } = clockAhead(rate);
  const charts: Record<string, Uint8Array | string> = {};
  const chartServer = await startFileServer(({ url }) => {
    const body = charts[url];
    return body === undefined ? { status: 404 } : { body };
  });
  const registry = await startRegistryServer();
  const it = await startWorld({ faults: quiet, onLine, rate, clock, webhook: "silent" });
  const holes = await Promise.all(
    [it.git.url("app"), chartServer.url, `http://${registry.host}`].map((url) =>
      startBlackHole(Number(new URL(url).port), { silentMs }),
    ),
  );
  const [git, ...packages] = holes;
  if (git === undefined) throw new Error("no hole");
  const through = (url: string, index: number) => {
    const moved = new URL(url);
    moved.port = String(holes[index]?.port);
    return moved.href;
  };
  try {
    const first = await it.createRepository("app", content("blue"));
    charts["/web-1.0.0.tgz"] = await chartOf("1.0.0");
    charts["/index.yaml"] = "apiVersion: v1\nentries:\n  web:\n  - {version: 1.0.0, urls: [web-1.0.0.tgz]}\n";
    registry.push("acme/files", "latest", {
      layers: [
        {
          mediaType: "application/vnd.cncf.flux.content.v1.tar+gzip",
          content: await tarGz([{ name: "a.yaml", body: configMap("files", { color: "stored" }) }]),
        },
      ],
    });
    await it.join({ name: "one-1" });
    const url = through(it.git.url("app"), 0);
    const main = { git: { url, ref: { branch: "main" } }, interval: "5m" };
    const lib = (ref: object) => sourceDocument("lib", { ...main, git: { url, ref }, paths: ["lib"] });
    const more = Array.from({ length: others }, (_, index) => sourceDocument(`more-${index}`, main));
    const [chartUrl, filesUrl] = [through(chartServer.url, 1), through(`http://${registry.host}`, 2)];
    const apply = { interval: "10m" };
    await it.apply(
      sourceDocument("app", { ...main, paths: ["deploy"] }),
      lib({ branch: "main" }),
      sourceDocument("chart", { helm: { url: chartUrl, chart: "web" }, interval: "5m" }),
      sourceDocument("files", {
        oci: { url: `oci://${new URL(filesUrl).host}/acme/files` },
        interval: "5m",
      }),
      ...more,
      groupDocument("web", {
        clusters: { all: true },
        templates: [
          { name: "app", source: "app", path: "deploy", apply },
          { name: "lib", source: "lib", path: "lib", apply },
          { name: "chart", source: "chart", path: ".", apply: { ...apply, defaultNamespace: namespace } },
          { name: "files", source: "files", path: ".", apply },
        ],
      }),
    );
    const path = (name: string) => `/api/v1/namespaces/${namespace}/configmaps/${name}`;
    const colorOn = async (cluster: string, name: string) => {
      const { object } = await it.kubectl(cluster, { method: "GET", path: path(name) });
      return (object as { readonly data?: { readonly color?: string } }).data?.color;
    };
    const colorsOn = async (cluster: string) =>
      (await Promise.all(["settings", "lib", "chart", "files"].map((name) => colorOn(cluster, name)))).join();
    const untilColors = (cluster: string, ...colors: readonly string[]) =>
      it.waitFor(`${cluster} has ${colors}`, async () => (await colorsOn(cluster)) === colors.join(), 180);
    await untilColors("one-1", "blue", "blue", "1.0.0", "stored");
    await it.push("app", content("green"));
    pass(step);
    await untilColors("one-1", "green", "green", "1.0.0", "stored");

    const watch = alarmWatch(resources, lines, it);
    const names = ofType(resources, "AWS::CloudWatch::Alarm").map(({ id }) => id.replace(/^Wiring/, ""));
    /** The alarms that ring for what is measured from now on. */
    const ringing = async () => {
      const from = await untilSurveyed(it, lines);
      return names.filter((name) => watch(name, from) === "ALARM");
    };
    pass(step);
    const before = await ringing();

    for (const hole of holes) hole.swallow();
    const writes = () =>
      it.fleet
        .requests()
        .filter(({ method, userAgent }) => method !== "GET" && userAgent !== handUserAgent)
        .filter(({ path: at }) => at.includes(`/namespaces/${namespace}/configmaps/`));
    const [writesBefore, beganAt] = [writes().length, clock.now().getTime()];
    await it.push("app", content("red"));
    const rang: string[] = [];
    const since = () => clock.now().getTime() - beganAt;
    const tamper = (name: string) =>
      it.kubectl("one-1", { method: "PATCH", path: path(name), body: { data: { color: "by hand" } } });
    const acts: (() => Promise<unknown>)[] = [
      () => tamper("settings").then(() => tamper("chart")),
      async () => {
        await it.apply(lib({ commit: first }));
        await untilColors("one-1", "green", "blue", "1.0.0", "stored");
      },
      async () => {
        await it.join({ name: "late-1" });
        await untilColors("late-1", "green", "blue", "1.0.0", "stored");
      },
    ];
    while (since() < 120 * minute) {
      if (since() > (120 * minute * (4 - acts.length)) / 5) await acts.shift()?.();
      pass(step);
      const found = (await ringing()).filter((name) => !before.includes(name));
      if (found.join() !== (rang.at(-1) ?? "")) rang.push(found.join());
      await it.waitFor("the end of the hanging requests", async () => holes.every((hole) => hole.open() === 0));
    }
    expect(acts).toEqual([]);
    expect(rang).toEqual([expect.stringMatching(/^FleetWatchStaleSource/)]);
    expect(await colorsOn("one-1")).toBe("green,blue,1.0.0,stored");
    // Two objects were put back, and the pin is one change.
    const own = writes()
      .slice(writesBefore)
      .filter(({ cluster }) => cluster === "one-1");
    expect(own.map(({ path: at }) => at.split("/").at(-1)).sort()).toEqual(["chart", "lib", "settings"]);
    const ready = async (name: string) =>
      (await it.source(name)).status.conditions.find(({ type }) => type === "Ready");
    expect((await ready("lib"))?.status).toBe("True");
    for (const name of ["app", "chart", "files", "more-0"]) expect((await ready(name))?.status).toBe("False");

    for (const hole of holes) hole.release();
    await untilColors("one-1", "red", "blue", "1.0.0", "stored");
    await untilColors("late-1", "red", "blue", "1.0.0", "stored");
    for (let index = 0; index < others; index++) {
      await it.waitFor(`more-${index}`, async () => (await ready(`more-${index}`))?.status === "True");
    }
    for (const name of ["chart", "files"]) await it.waitFor(name, async () => (await ready(name))?.status === "True");
    // A listing and a fetch, each with a connection of its own for each request of git, and one more poll.
    expect(git.taken()).toBeLessThan((others + 1) * 8);
    for (const hole of packages) expect(hole.taken()).toBeLessThan(8);
    await it.waitFor("silence", async () => (await ringing()).every((name) => before.includes(name)));
  } finally {
    await it.close();
    for (const hole of holes) await hole.stop();
    await registry.stop();
    await chartServer.stop();
  }
}, 900_000);
