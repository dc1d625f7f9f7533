/** What a machine in the background says of itself, for whoever comes later: in its folder, while it runs. */
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { LocalFailure } from "#local/base/local-failure.ts";
import { controlAddressSchema } from "#local/serve/control-server.ts";
import { clusterChoiceSchema, portsSchema } from "#local/serve/state-folder.ts";
import { quoted } from "#shared/base/shell-word.ts";

const machineFileSchema = z.object({
  pid: z.number().int().positive(),
  startedAt: z.string(),
  folder: z.string(),
  clusters: z.number().int(),
  kept: clusterChoiceSchema,
  endpoint: z.string(),
  /** Of the API, the git server and the clusters; the last is absent where the cluster is the user's own. */
  ports: portsSchema.partial({ clusters: true }),
  kubeconfig: z.string(),
  /** The way in for `starling local faults`; its token is a secret. */
  control: controlAddressSchema,
  /** Address of the pages, with the word that opens them; absent where a version before them started it. */
  pages: z.string().optional(),
  /** Context file with the endpoint and its key. */
  access: z.string(),
  /** Where the repository given with `--repo` is, and the files that let git in where it is served here. */
  repository: z
    .object({
      url: z.string(),
      credentials: z.object({ secret: z.string(), kind: z.enum(["basic", "bearer"]) }).optional(),
      config: z.string(),
      ca: z.string(),
    })
    .optional(),
});
export type MachineFile = z.infer<typeof machineFileSchema>;

const readyFile = (folder: string) => join(folder, "machine.json");
const pidFile = (folder: string) => join(folder, "pid");

/**
 * The machine that is up in this folder; the file of one that died says nothing.
 * @throws Error when the file cannot be read as one.
 */
export function readMachine(folder: string): MachineFile | undefined {
  if (!existsSync(readyFile(folder))) return undefined;
  const machine = machineFileSchema.parse(JSON.parse(readFileSync(readyFile(folder), "utf8")));
  return isServing(machine.pid) ? machine : undefined;
}

/** Says that the machine is ready; replaced in one step, so that nobody reads half of it. */
export function writeMachine(machine: MachineFile): void {
  const path = readyFile(machine.folder);
  writeFileSync(`${path}.new`, `${JSON.stringify(machine, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** The process that has the folder, ready or not. */
export function holderOf(folder: string): number | undefined {
  if (!existsSync(pidFile(folder))) return undefined;
  const pid = Number(readFileSync(pidFile(folder), "utf8"));
  return Number.isInteger(pid) && pid > 0 && isServing(pid) ? pid : undefined;
}

/**
 * Takes the folder for this process: two at once would write one database.
 * @returns what gives it back. @throws LocalFailure naming the process that has it.
 */
export function takeFolder(folder: string): () => void {
  const path = pidFile(folder);
  const holder = holderOf(folder);
  if (holder !== undefined) {
    const next = `starling local status --state ${quoted(folder)}`;
    throw new LocalFailure(`${folder} is in use by process ${holder}`, { exit: "unknown", next });
  }
  rmSync(path, { force: true });
  rmSync(readyFile(folder), { force: true });
  const file = openSync(path, "wx", 0o600);
  writeFileSync(file, String(process.pid));
  closeSync(file);
  return () => {
    rmSync(readyFile(folder), { force: true });
    rmSync(path, { force: true });
  };
}

/** Process ids come again: where the system says what a process runs, it has to be ours. */
export function isServing(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    const commandLine = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    return commandLine.includes("local\0serve");
  } catch {
    // No /proc on this system; a process that is a zombie has no command line, but it can be read.
    return !existsSync("/proc/self/cmdline");
  }
}
