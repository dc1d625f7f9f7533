/** The certificates of a company are larger than the environment of a function, so a layer brings them as a file. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Template } from "aws-cdk-lib/assertions";
import { afterAll, describe, expect, test } from "vitest";
import { readSettings } from "#infra/read-settings.ts";
import { starlingApp } from "#infra/starling-app.ts";
import { createTlsCertificate } from "#local/base/tls-certificate.ts";
import { functionNamed, resourcesIn } from "#test/synth/synthesized.ts";

const folder = mkdtempSync(join(tmpdir(), "starling-git-ca-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const certificates = await Promise.all(Array.from({ length: 20 }, () => createTlsCertificate()));
const bundle = certificates.map(({ cert }) => `# an authority\n${cert.trim()}\n`).join("\n");
const file = join(folder, "authorities.pem");
writeFileSync(file, bundle);

test("resolve gets any number of certificates in a layer, and its environment stays small", () => {
  expect(bundle.length).toBeGreaterThan(8000);
  const outdir = join(folder, "assembly");
  const { app, control } = starlingApp({ outdir, context: { gitCa: file, "aws:cdk:bundling-stacks": [] } });
  app.synth();
  const resources = resourcesIn(Template.fromStack(control));
  const resolve = functionNamed(resources, "resolve");
  const { Variables } = resolve.Properties.Environment as { Variables: Record<string, string> };
  expect(Variables.STARLING_GIT_CA_FILE).toBe("/opt/git-ca.pem");
  expect(JSON.stringify(Variables).length).toBeLessThan(2000);
  const [layer] = resolve.Properties.Layers as { Ref: string }[];
  expect(resources.find(({ id }) => id === layer?.Ref)?.Type).toBe("AWS::Lambda::LayerVersion");

  const staged = readdirSync(outdir, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith("git-ca.pem"),
  );
  expect(staged).toHaveLength(1);
  const text = readFileSync(join(outdir, staged[0] ?? ""), "utf8");
  for (const { cert } of certificates) expect(text).toContain(cert.trim());
});

describe("the setting", () => {
  test("the setting takes the text of certificates as well as a path", () => {
    expect(readSettings({ gitCa: bundle })).toEqual(readSettings({ gitCa: file }));
  });

  const key = certificates[0]?.key ?? "";
  const [first = ""] = certificates.map(({ cert }) => cert);
  test.each([
    [
      "a path without a file",
      "none.pem",
      /^setting gitCa is "none\.pem", and the file cannot be read \(ENOENT\); expected the path of a file of certificates in PEM, or/,
    ],
    [
      "a key with its certificate",
      first + key,
      /, and it contains a private key, which must not be deployed; expected/,
    ],
    [
      "half a certificate",
      `${first.slice(0, 120)}\n-----END CERTIFICATE-----`,
      /, and certificate 1 in it cannot be parsed;/,
    ],
    [
      "something else",
      "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
      /, and it contains no certificate; expected/,
    ],
    ["very much", first.repeat(3000), /, and it has more than 1000000 characters; expected/],
  ])("refuses %s", (_what, value, message) => {
    expect(() => readSettings({ gitCa: value })).toThrow(message);
  });

  test("the error of the setting repeats no text that may be a key", () => {
    expect(() => readSettings({ gitCa: key })).toThrow(
      /^setting gitCa is a text in PEM, and it contains a private key/,
    );
    expect(() => readSettings({ gitCa: key })).not.toThrow(key.slice(30, 50));
  });
});
