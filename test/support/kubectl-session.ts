/** Runs sessions of the real kubectl against a server and records the output, without parts that differ each time. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringifyJson } from "#shared/base/json.ts";
import type { KubectlCommand, KubectlSession } from "#test/contract/local/apiserver/kubectl-sessions.ts";

export interface SessionServer {
  readonly server: string;
  readonly caData: string;
  readonly token: string;
}

const commandTimeoutMs = 60_000;

/** One block per command: the command line, its output, and its exit code unless it is 0. */
export async function runKubectlSession(
  { server, caData, token }: SessionServer,
  session: KubectlSession,
  kubectl: string,
): Promise<readonly string[]> {
  const folder = await mkdtemp(join(tmpdir(), "starling-kubectl-"));
  try {
    const kubeconfig = {
      ...{ apiVersion: "v1", kind: "Config", "current-context": "test" },
      clusters: [{ name: "test", cluster: { server, "certificate-authority-data": caData } }],
      users: [{ name: "test", user: { token } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    };
    await writeFile(join(folder, "kubeconfig.json"), JSON.stringify(kubeconfig), { mode: 0o600 });
    await mkdir(join(folder, "files"));
    for (const [name, items] of Object.entries(session.files)) {
      const body = items.length === 1 ? items[0] : { apiVersion: "v1", kind: "List", items };
      await writeFile(join(folder, "files", name), stringifyJson(body));
    }
    const blocks: string[] = [];
    for (const command of session.commands) {
      blocks.push(normalised(await runCommand(command, { kubectl, folder }), server));
    }
    return blocks;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function commandLine({ args, env = {} }: KubectlCommand): string {
  const quoted = args.map((arg) => (/[\s{}'"]/.test(arg) ? `'${arg}'` : arg));
  const settings = Object.entries(env).map(([name, value]) => `${name}=${/\s/.test(value) ? `'${value}'` : value}`);
  return ["$", ...settings, "kubectl", ...quoted].join(" ");
}

function runCommand(
  command: KubectlCommand,
  { kubectl, folder }: { readonly kubectl: string; readonly folder: string },
): Promise<string> {
  // The environment excludes the caller's kubeconfig, plugins and cache. PATH contains the programs for diff and edit.
  const env = {
    ...{ PATH: process.env.PATH, HOME: folder, TMPDIR: folder, KUBECONFIG: join(folder, "kubeconfig.json") },
    ...command.env,
  };
  const options = { cwd: join(folder, "files"), env, timeout: commandTimeoutMs };
  return new Promise((resolve) => {
    execFile(kubectl, command.args, options, (error, stdout, stderr) => {
      const code = error === null ? [] : [`exit code ${error.code ?? error.signal}`];
      const errors = lines(stderr).map((line) => `! ${line}`);
      resolve([commandLine(command), ...lines(stdout), ...errors, ...code].join("\n").replaceAll(folder, "<folder>"));
    });
  });
}

function lines(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n");
}

const replacements: readonly (readonly [RegExp, string])[] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, "<uid>"],
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4})/g, "<time>"],
  [/\/(LIVE|MERGED)-\d+\//g, "/$1-<n>/"],
  [/resourceVersion: "\d+"/g, 'resourceVersion: "<rv>"'],
  [/\b10\.0\.0\.\d+\b/g, "<ip>"],
  [/\b([IWE])\d{4} [\d:.]+ +\d+ /g, "$1<time> "],
  // Whether kubectl's watch notices its own timeout is a race inside kubectl.
  [/^! E<time> reflector\.go:.*context deadline exceeded.*\n/gm, ""],
  // Tables contain ages between wide gaps or at the end of a line. The width of a gap depends on the columns.
  [/ {2,}(\d+m)?\d+s(?= {2,}|$)/gm, "   <age>"],
  [/(?<=\S) {3,}(?=\S)/g, "   "],
  [/^([! ]*\S.*?) +$/gm, "$1"],
  // The hash of a template, and the random suffix of its Pods.
  [/\bweb-[a-z0-9]{6,10}(-[a-z0-9]{5})?\b/g, "web-<hash>"],
];

/**
 * managedFields in the order of their times. The times are in seconds, so chance decides whether two commands differ.
 */
const managerEntries = /(?<=^ {2}managedFields:\n)(?: {2}[- ] .*\n)+/gm;

function normalised(block: string, server: string): string {
  const plain = replacements.reduce(
    (text, [pattern, by]) => text.replaceAll(pattern, by),
    block.replaceAll(server, "<server>"),
  );
  return plain.replaceAll(managerEntries, (entries) =>
    entries
      .split(/(?=^ {2}- )/m)
      .sort()
      .join(""),
  );
}

/** Two sessions side by side, with a mark at each difference. */
export function sideBySide(left: readonly string[], right: readonly string[], width = 78): string {
  const rows: string[] = [];
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const [a, b] = [(left[index] ?? "").split("\n"), (right[index] ?? "").split("\n")];
    for (let line = 0; line < Math.max(a.length, b.length); line += 1) {
      const mark = a[line] === b[line] ? "|" : "#";
      rows.push(
        `${(a[line] ?? "").slice(0, width).padEnd(width)} ${mark} ${(b[line] ?? "").slice(0, width)}`.trimEnd(),
      );
    }
  }
  return rows.join("\n");
}
