import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface LockedPackage {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const lock = new URL("../../../package-lock.json", import.meta.url);
const packages: Readonly<Record<string, LockedPackage>> = JSON.parse(readFileSync(lock, "utf8")).packages;

/** Node searches the package's own node_modules first, and then those above. */
function isLocked(name: string, from: string): boolean {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf("/node_modules/")))) {
    if (Object.hasOwn(packages, at === "" ? `node_modules/${name}` : `${at}/node_modules/${name}`)) return true;
    if (at === "") return false;
  }
}

test("package-lock.json has every dependency of its packages, also for other platforms, because npm ci refuses it otherwise", () => {
  const missing = Object.entries(packages).flatMap(([path, { dependencies, optionalDependencies }]) =>
    Object.keys({ ...dependencies, ...optionalDependencies })
      .filter((name) => !isLocked(name, path))
      .map((name) => `${path} wants ${name}`),
  );
  expect(missing).toEqual([]);
});
