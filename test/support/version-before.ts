/** The functions of versions before this one, as they are in the repository's history. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { FunctionCode } from "#local/machine/function-code.ts";
import { defined } from "#shared/base/defined.ts";
import { zoneQueues } from "#shared/fleet/zone-parts.ts";

/** The commit of the templates in test/synth/fixtures/version-before.json. Each release changes both. */
const ofTemplates = "4adc73bf10dcd34bb94517e0a40f96189d86ed0e";
/** A version with zones, in Starling's own account and region only. */
export const withZones = "e2b024b03793cfde2e5cffec5f7e77c8375b38d8";

export interface VersionBefore {
  /** A checkout of it, which runs with this one's dependencies. */
  readonly folder: string;
  /** @returns undefined for a function that it did not have. */
  code(folder: string): FunctionCode | undefined;
  remove(): void;
}

/** As its own template sets them: what is new it does not look at, and what went or was shortened is put back. */
function asBefore(variables: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { STARLING_GIT_CA_FILE: file, STARLING_ZONE_QUEUES: zones, STARLING_ZONE_NETWORKS: networks } = variables;
  const queues = [...zoneQueues(zones, variables.STARLING_QUEUE_APPLY ?? "")].map(([zone, url]) => `${zone}=${url}`);
  return {
    ...variables,
    ...defined({
      STARLING_GIT_CA: file === undefined ? undefined : readFileSync(file, "utf8"),
      STARLING_ZONE_QUEUES: zones === undefined ? undefined : queues.join(","),
      STARLING_ZONE_ADDRESSES:
        networks === undefined ? variables.STARLING_ZONE_ADDRESSES : networks.replaceAll(/=[a-z]+\+?/g, "="),
    }),
  };
}

/** Whether the history is here: a clone may leave it out. */
export function hasVersionBefore(commit = ofTemplates): boolean {
  try {
    execFileSync("git", ["cat-file", "-e", `${commit}^{commit}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

export async function versionBefore(commit = ofTemplates): Promise<VersionBefore> {
  const folder = mkdtempSync(join(tmpdir(), "starling-version-before-"));
  const packed = execFileSync("git", ["archive", commit], { maxBuffer: 256 * 1024 * 1024 });
  execFileSync("tar", ["x", "-C", folder], { input: packed });
  symlinkSync(join(process.cwd(), "node_modules"), join(folder, "node_modules"));
  const url = pathToFileURL(join(folder, "local/machine/function-code.ts")).href;
  const { functionCode } = (await import(/* @vite-ignore */ url)) as {
    readonly functionCode: (folder: string) => FunctionCode;
  };
  return {
    folder,
    code(name) {
      if (!existsSync(join(folder, "functions", name))) return undefined;
      const { check, wire } = functionCode(name);
      return {
        check: (variables) => check(asBefore(variables)),
        wire: (variables, aws, options) => wire(asBefore(variables), aws, options),
      };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
