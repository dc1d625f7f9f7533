/** A reader of a message may not be allowed to see the repository, so that no message has a password of its URLs. */
import { expect, test } from "vitest";
import { HelmTemplate } from "#shared/adapters/render/helm-template.ts";
import { KubectlKustomize } from "#shared/adapters/render/kubectl-kustomize.ts";
import { renderObjects } from "#shared/adapters/render/render-objects.ts";
import { readChart } from "#shared/source/helm/chart.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const url = "https://bot:hunter2@git.example.com/base?ref=main";
const shown = "https://***@git.example.com/base?ref=main";
const none = () => {
  throw new Error("nothing runs, because the input is refused before");
};

test.each([
  ["a base", `resources: ["${url}"]`],
  ["a component", `components: ["${url}"]`],
  ["a patch", `patches: [{path: "${url}"}]`],
  ["a base of git", `resources: ["git::${url}"]`],
])("the message about %s that is remote hides its password", async (_what, text) => {
  const files = [{ path: "app/kustomization.yaml", executable: false, content: bytes(text) }];
  const renderers = { kustomize: new KubectlKustomize({ kubectl: none }), helm: new HelmTemplate({ helm: none }) };
  const refused = expect(renderObjects({ files, others: new Map(), path: "app" }, renderers)).rejects;
  await refused.toThrow(`${shown}" is remote`);
});

test("the message about a chart that is not vendored hides the password of its repository", () => {
  const chart = `name: a\nversion: 1.0.0\ndependencies: [{name: cache, version: 1.0.0, repository: "${url}"}]\n`;
  expect(() => readChart("app", new Map([["Chart.yaml", bytes(chart)]]))).toThrow(
    `cache 1.0.0 from ${shown} is not in`,
  );
});

test("the message about a remote schema of values hides its password", () => {
  const files = new Map([
    ["Chart.yaml", bytes("name: a\nversion: 1.0.0\n")],
    ["values.schema.json", bytes(JSON.stringify({ $ref: url }))],
  ]);
  expect(() => readChart("app", files)).toThrow(`"${shown}" is outside of the schema`);
});
