/** `render --offline` shows the same objects of a folder with links as of one with copies. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { runWithoutTerminal } from "#test/support/run-without-terminal.ts";

const home = mkdtempSync(join(tmpdir(), "starling-render-links-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function documents(template: string): string {
  return `apiVersion: starling.dev/v1alpha1
kind: Source
metadata: { name: app, namespace: shop }
spec: { git: { url: "https://git.example/app.git" }, paths: [app] }
---
apiVersion: starling.dev/v1alpha1
kind: Cluster
metadata: { name: c1 }
spec: { eks: { arn: "arn:aws:eks:eu-west-1:111111111111:cluster/c1" }, access: { role: { name: apply } } }
---
apiVersion: starling.dev/v1alpha1
kind: Sync
metadata: { name: web, namespace: shop }
spec: { cluster: c1, source: app, ${template} }
`;
}

function configMap(name: string): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: ${name} }\ndata: { of: "${name}" }\n`;
}

type Links = Readonly<Record<string, string>>;
const chart = {
  "app/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
  "shared/templates/a.yaml":
    `${configMap("a")}  more: {{ .Values.more | quote }}\n  file: {{ .Files.Get "f.txt" }}\n`.replace(
      'data: { of: "a" }\n',
      "data:\n",
    ),
  "shared/f.txt": "from-a-file",
  "shared/values.yaml": "more: by-default\n",
  "shared/prod.yaml": "more: by-values\n",
};
const chartLinks: Links = {
  "app/templates": "../shared/templates",
  "app/f.txt": "../shared/f.txt",
  "app/values.yaml": "../shared/values.yaml",
  "app/prod.yaml": "../shared/prod.yaml",
};
const cases: readonly (readonly [legend: string, template: string, files: Links, links: Links, shows: string])[] = [
  [
    "plain manifests",
    "path: app",
    { "app/a.yaml": configMap("a"), "shared/b.yaml": configMap("b"), "more/c.yaml": configMap("c") },
    { "app/b.yaml": "../shared/b.yaml", "app/c": "../more" },
    "name: b",
  ],
  [
    "a kustomization",
    "path: app/own",
    {
      "shared/kustomization.yaml": "namePrefix: x-\nresources: [a.yaml]\n",
      "shared/a.yaml": configMap("a"),
      "app/own/kustomization.yaml": "resources: [../base, b.yaml]\n",
      "shared/b.yaml": configMap("b"),
    },
    { "app/base": "../shared", "app/own/b.yaml": "../../shared/b.yaml" },
    "name: x-a",
  ],
  [
    "a chart with its own values",
    "path: app, apply: { defaultNamespace: shop }, render: { helm: {} }",
    chart,
    chartLinks,
    "file: from-a-file",
  ],
  [
    "a chart with a file of values",
    "path: app, apply: { defaultNamespace: shop }, render: { helm: { valuesFrom: [{ path: app/prod.yaml }] } }",
    chart,
    chartLinks,
    "more: by-values",
  ],
];

test.each(cases)("links and copies give the same rendering: %s", async (_legend, template, files, links, shows) => {
  const folder = mkdtempSync(join(home, "of-"));
  const put = (path: string) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    return join(folder, path);
  };
  for (const side of ["linked", "copied"]) {
    for (const [path, text] of Object.entries(files)) writeFileSync(put(`${side}/${path}`), text);
    for (const [path, target] of Object.entries(links)) {
      const at = put(`${side}/${path}`);
      if (side === "linked") symlinkSync(target, at);
      else cpSync(join(dirname(at), target), at, { recursive: true });
    }
  }
  writeFileSync(join(folder, "fleet.yaml"), documents(template));
  const render = async (side: string) => {
    const asked = ["render", "sync/web", "-n", "shop", "--offline", "-f", "fleet.yaml", "--source", `app=${side}`];
    const { code, err, out } = await runWithoutTerminal(asked, { folder, patienceMs: 60_000 });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return out.replaceAll(side, "folder");
  };
  const linked = await render("linked");
  expect(linked).toContain(shows);
  expect(linked).toBe(await render("copied"));
});

test("a link out of the folder is refused by its path, with the next step", async () => {
  const folder = mkdtempSync(join(home, "of-"));
  mkdirSync(join(folder, "app/app"), { recursive: true });
  symlinkSync("/etc/hostname", join(folder, "app/app/a.yaml"));
  writeFileSync(join(folder, "fleet.yaml"), documents("path: app"));
  const asked = ["render", "sync/web", "-n", "shop", "--offline", "-f", "fleet.yaml", "--source", "app=app"];
  const { code, err, out } = await runWithoutTerminal(asked, { folder, patienceMs: 60_000 });
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain(
    'GitPathRefused: app: the path "app/a.yaml" of the repository is a link to "/etc/hostname", which leads out of the repository; commit the file or folder itself instead of the link, or narrow spec.paths',
  );
});
