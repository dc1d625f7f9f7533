#!/usr/bin/env node
// The command's entry under any Node from 20 on: finds the Node 24 that comes with the dependencies and runs main.ts.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const nodeMajor = 24;
const main = fileURLToPath(new URL("main.ts", import.meta.url));

if (Number(process.versions.node.split(".")[0]) >= nodeMajor) {
  await import("./main.ts");
} else {
  runUnder(bundledNode());
}

function bundledNode() {
  const pinned = join("node_modules", `node-${process.platform}-${process.arch}`, "bin", "node");
  for (let folder = dirname(main); ; folder = dirname(folder)) {
    const candidate = join(folder, pinned);
    if (existsSync(candidate)) return candidate;
    if (folder === dirname(folder)) break;
  }
  console.error(`error: starling needs Node ${nodeMajor}; this is Node ${process.versions.node}`);
  console.error(`  next: npm ci --prefix ${dirname(dirname(main))}`);
  process.exit(3);
}

function runUnder(node) {
  // The IPC channel closes however this process ends, so that a command in the foreground ends with it.
  const child = spawn(node, [main, ...process.argv.slice(2)], { stdio: ["inherit", "inherit", "inherit", "ipc"] });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => {
    console.error(`error: cannot run ${node}: ${error.message}`);
    process.exit(3);
  });
  child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
}
