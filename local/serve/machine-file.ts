/** The file in which a running machine describes itself for other commands. It is in the machine's folder. */
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
  /** The ports of the API, the git server and the clusters. The last is undefined for a cluster of the user. */
  ports: portsSchema.partial({ clusters: true }),
  kubeconfig: z.string(),
  /** The address and token for `starling local faults`; the token is a secret. */
  control: controlAddressSchema,
  /** The URL of the pages, which contains their key. Undefined if an older version of Starling started the machine. */
  pages: z.string().optional(),
  /** The path of the context file with the endpoint and its key. */
  access: z.string(),
  /** The repository of `--repo`, and the files that give git access if this machine serves it. */
  repository: z
    .object({
      url: z.string(),
      credentials: z
        .object({ secret: z.string().optional(), kind: z.enum(["basic", "bearer", "tls", "ssh", "githubApp", "aws"]) })
        .optional(),
      config: z.string(),
      ca: z.string(),
    })
    .optional(),
});
export type MachineFile = z.infer<typeof machineFileSchema>;

const readyFile = (folder: string) => join(folder, "machine.json");
const pidFile = (folder: string) => join(folder, "pid");

/**
 * The machine that runs in this folder. The file of a machine that has died is ignored. @throws Error when the file is
 * not readable.
 */
export function readMachine(folder: string): MachineFile | undefined {
  if (!existsSync(readyFile(folder))) return undefined;
  const machine = machineFileSchema.parse(JSON.parse(readFileSync(readyFile(folder), "utf8")));
  return isServing(machine.pid) ? machine : undefined;
}

/** Records that the machine is ready. The file is replaced in one step, so that no reader sees half of it. */
export function writeMachine(machine: MachineFile): void {
  const path = readyFile(machine.folder);
  writeFileSync(`${path}.new`, `${JSON.stringify(machine, undefined, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** The process that holds the folder, whether it is ready or not. */
export function holderOf(folder: string): number | undefined {
  if (!existsSync(pidFile(folder))) return undefined;
  const pid = Number(readFileSync(pidFile(folder), "utf8"));
  return Number.isInteger(pid) && pid > 0 && isServing(pid) ? pid : undefined;
}

/**
 * Takes the folder for this process, because two processes would write the same database. @returns a function that
 * releases it. @throws LocalFailure that names the process that holds the folder.
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

/** Systems reuse process ids. If the system shows the command of a process, it must be Starling's. */
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
    // This system has no /proc. A zombie process has an empty command line, but the file is readable.
    return !existsSync("/proc/self/cmdline");
  }
}
