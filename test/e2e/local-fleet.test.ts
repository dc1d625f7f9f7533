import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";
import { makeLocalHome, settings } from "#test/support/local-home.ts";

const home = await makeLocalHome();
const { cli } = home;
const overlay = (ring: string) => `resources: [../../base]\nlabels: [{pairs: {ring: ${ring}}}]\n`;
const kubeconfig = join(home.folder, ".local", "state", "starling", "local", "kubeconfig");

beforeAll(async () => {
  await home.commit({
    "deploy/base/kustomization.yaml": "resources: [settings.yaml]\n",
    "deploy/base/settings.yaml": settings("one"),
    ...Object.fromEntries(
      ["canary", "early", "broad"].map((ring) => [`deploy/overlays/${ring}/kustomization.yaml`, overlay(ring)]),
    ),
    "chart/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "chart/templates/settings.yaml": settings("{{ .Release.Name }}"),
  });
});

afterAll(async () => {
  await cli("local down");
  home.remove();
});

describe("local up with a repository", () => {
  test.each([
    { line: "--repo nowhere --path deploy", words: ["--repo is", "there is no"] },
    { line: "--repo shop --path deplo", words: ["--path is deplo", "it has chart, deploy"] },
    { line: "--repo shop --path deploy --ref nope", words: ["--ref is nope", "it has main"] },
    { line: "--path deploy", words: ["--path needs a repository, and the machine has none yet"] },
    { line: "--repo git@git.example.com:shop --path .", words: ["only https:// URLs are supported"] },
  ])("local up $line is refused and starts nothing", async ({ line, words }) => {
    const ran = await cli(`local up ${line}`);
    expect(ran).toMatchObject({ code: 2, out: "" });
    for (const each of words) expect(ran.err).toContain(each);
    expect(ran.err).toContain("next: starling local up --repo");
    expect((await cli("local status")).code).toBe(1);
  });

  test("one command rolls a repository out ring by ring", async () => {
    const repo = pathToFileURL(join(home.folder, "shop")).href;
    const up = await cli(["local", "up", "--clusters", "3", "--repo", repo, "--path", "deploy"]);
    expect(up).toMatchObject({ code: 0 });
    expect(up.err).toContain(
      "syncgroup/shop created: deploy/overlays/{{ cluster.labels.ring }}, an overlay for each ring",
    );
    const rolled = await cli("rollout status shop -w --timeout 90s");
    expect(rolled.out).toMatch(/\(Complete\)/);
    expect(rolled.code).toBe(0);
    for (const ring of ["canary", "early", "broad"]) {
      const line = `--context ${ring}-1 -n default get configmap settings -o jsonpath={.metadata.labels.ring}`;
      expect(await home.kubectl(kubeconfig, line)).toBe(ring);
    }
  });

  test("a second local up leaves the existing group unchanged, and refuses another folder with the reason", async () => {
    const before = await cli("get sources,syncgroups -o json");
    const again = await cli("local up --repo shop --path deploy");
    expect(again).toMatchObject({ code: 0 });
    expect(again.err).toContain("syncgroup/shop exists, and is not changed");
    const other = await cli("local up --repo shop --path chart");
    expect(other).toMatchObject({ code: 2 });
    expect(other.err).toContain("--path is chart, but syncgroup/shop has deploy/overlays/");
    const specs = (text: string) => JSON.parse(text).items.map(({ spec }: { spec: unknown }) => spec);
    expect(specs((await cli("get sources,syncgroups -o json")).out)).toEqual(specs(before.out));
  });

  test("init writes documents for a repository, which have a schema for editors and are valid for apply", async () => {
    const ran = await cli("init charts --local --path chart");
    expect(ran).toMatchObject({ code: 0 });
    const file = (name: string) => readFileSync(join(home.folder, "charts", name), "utf8");
    for (const name of ["source.yaml", "sync-group.yaml"]) {
      expect(file(name)).toMatch(/^# yaml-language-server: \$schema=\.\/starling\.schema\.json\n/);
    }
    const { url, credentials } = (await home.status()).repository;
    expect(parseDocuments(file("source.yaml"), "source.yaml")[0]?.value).toMatchObject({
      spec: { git: { url, credentials } },
    });
    expect(parseDocuments(file("sync-group.yaml"), "sync-group.yaml")[0]?.value).toMatchObject({
      spec: { templates: [{ path: "chart", render: { helm: {} } }], rollout: { stages: [{}, {}, { name: "broad" }] } },
    });
    expect(await cli("validate -f charts")).toMatchObject({ code: 0, out: "2 documents are valid\n" });
    expect((await cli("init charts --local --path chart")).err).toContain("init overwrites no file");
    expect((await cli("init more --local --path charts")).err).toContain("has no folder charts; it has chart, deploy");
  });
});
