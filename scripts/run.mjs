/**
 * `node scripts/run.mjs demo|test|bench|nightly|starling [arguments]`: the commands of the README, from a fresh clone,
 * under any Node from 20 on and with nothing installed. Installs what package-lock.json names when it is not there yet,
 * then runs the command under the Node 24 that comes with the dependencies; `install` does no more than the first. `test --require-real` fails when no check was made on a
 * real kube-apiserver.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { delimiter, join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const modules = join(root, "node_modules");
const stamp = join(modules, ".starling-lock-sha256");
const lock = join(root, ".starling", "install.lock");

/** What Starling is written for: it runs TypeScript as it is. */
const NODE_MAJOR = 24;
const HEARTBEAT_SECONDS = 5;
/** A holder that missed this many seconds of heartbeats is gone, whatever its process id says. */
const STALE_SECONDS = 600;

const commands = {
  demo: ["local/stories/demo.ts"],
  test: ["node_modules/vitest/vitest.mjs", "run"],
  bench: ["test/bench/main.ts"],
  nightly: ["test/nightly/main.ts"],
  starling: ["cli/main.ts"],
};

/** The newest signal that was asked to end the running program. */
let interruptedBy;

const [command, ...rest] = process.argv.slice(2);
if (command !== "install" && !Object.hasOwn(commands, command ?? "")) {
  console.error(`usage: node scripts/run.mjs ${[...Object.keys(commands), "install"].join("|")} [arguments]`);
  process.exit(2);
}
await install();
if (command === "install") process.exit();
const requireReal = command === "test" && rest.includes("--require-real");
if (requireReal) process.env.STARLING_REQUIRE_REAL = "1";
const parameters = requireReal ? rest.filter((each) => each !== "--require-real") : rest;
process.exit(await run(nodeBinary(), [...commands[command], ...parameters]));

/** Leaves node_modules as package-lock.json says; one process at a time. */
async function install() {
  if (isStamped()) return;
  await acquire();
  const heartbeat = setInterval(() => utimesSync(lock, new Date(), new Date()), HEARTBEAT_SECONDS * 1000);
  try {
    if (isStamped()) return;
    if (holdsLockedPackages()) {
      writeFileSync(stamp, lockDigest());
      return;
    }
    console.error("Installing the dependencies of package-lock.json (npm ci); this happens once.");
    const npm = process.env.npm_execpath;
    const options = ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"];
    // npm goes on when this process is killed: while it lives, the lock is held.
    const noteProcess = (pid) => appendFileSync(lock, ` ${pid}`);
    const code =
      npm?.endsWith("js") === true
        ? await run(process.execPath, [npm, ...options], noteProcess)
        : await run(process.platform === "win32" ? "npm.cmd" : "npm", options, noteProcess);
    if (code !== 0) {
      console.error(
        interruptedBy === undefined
          ? `npm ci failed (exit code ${code}); nothing was started. Run "npm ci" by hand to see why.`
          : "Interrupted; the next run installs the dependencies from the beginning.",
      );
      process.exitCode = interruptedBy === undefined ? code : 128 + constants.signals[interruptedBy];
    } else {
      writeFileSync(stamp, lockDigest());
    }
  } finally {
    clearInterval(heartbeat);
    rmSync(lock, { force: true });
  }
  if (process.exitCode) process.exit();
}

/** The stamp is written last, so an interrupted installation has none and is made again. */
function isStamped() {
  return existsSync(stamp) && readFileSync(stamp, "utf8") === lockDigest();
}

/** Whether `npm install` or `npm ci`, run by hand, left every locked package: npm writes its own record last as well. */
function holdsLockedPackages() {
  const record = join(modules, ".package-lock.json");
  if (!existsSync(record)) return false;
  const installed = JSON.parse(readFileSync(record, "utf8")).packages;
  const locked = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  return Object.entries(locked).every(
    ([path, entry]) =>
      path === "" ||
      (installed[path] === undefined
        ? entry.optional === true || entry.devOptional === true
        : installed[path].version === entry.version &&
          installed[path].integrity === entry.integrity &&
          existsSync(join(root, path, "package.json"))),
  );
}

function lockDigest() {
  return createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
}

/** Creates the lock file, waiting while another live process holds it. */
async function acquire() {
  mkdirSync(join(root, ".starling"), { recursive: true });
  let told = false;
  while (!createExclusively(lock)) {
    if (isAbandoned(lock)) {
      breakLock();
      continue;
    }
    if (!told) console.error("Another process installs the dependencies; waiting for it.");
    told = true;
    await sleep(250);
  }
}

/** Two processes that find the same dead holder must not remove each other's new lock: only one at a time may break. */
function breakLock() {
  const breaker = `${lock}.break`;
  if (!createExclusively(breaker)) {
    if (isAbandoned(breaker)) rmSync(breaker, { force: true });
    return;
  }
  try {
    if (isAbandoned(lock)) rmSync(lock, { force: true });
  } finally {
    rmSync(breaker, { force: true });
  }
}

function createExclusively(path) {
  try {
    writeFileSync(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

function isAbandoned(path) {
  try {
    const pids = readFileSync(path, "utf8").split(" ").filter(Boolean).map(Number);
    // Between its creation and its first byte the file is empty: somebody is at it right now.
    if (pids.length > 0 && !pids.some(isAlive)) return true;
    return Date.now() - statSync(path).mtimeMs > STALE_SECONDS * 1000;
  } catch (error) {
    if (error.code === "ENOENT") return false;
    throw error;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** The Node of the `node` package, or the running one where that package has no binary and this one is new enough. */
function nodeBinary() {
  const bundled = join(modules, "node", "bin", process.platform === "win32" ? "node.exe" : "node");
  if (majorOf(bundled) >= NODE_MAJOR) return bundled;
  if (Number.parseInt(process.versions.node, 10) >= NODE_MAJOR) return process.execPath;
  console.error(
    `Starling needs Node ${NODE_MAJOR} or newer. This is ${process.version}, and the "node" package has no working binary ` +
      `for ${process.platform}-${process.arch} (its install script may be switched off by ignore-scripts). ` +
      `Install Node ${NODE_MAJOR} from https://nodejs.org and run the command again.`,
  );
  process.exit(1);
}

function majorOf(binary) {
  const { stdout } = spawnSync(binary, ["--version"], { encoding: "utf8" });
  return Number.parseInt(stdout?.slice(1) ?? "", 10) || 0;
}

/** Runs a program in the repository's folder with its tools first on the PATH; resolves to its exit code. */
function run(program, parameters, started = (_pid) => {}) {
  const child = spawn(program, parameters, {
    cwd: root,
    stdio: "inherit",
    env: {
      ...process.env,
      // Where the user stands: npm names it before it goes to the package's folder itself.
      INIT_CWD: relative(root, process.cwd()) === "" ? (process.env.INIT_CWD ?? root) : process.cwd(),
      PATH: `${join(modules, ".bin")}${delimiter}${process.env.PATH ?? ""}`,
    },
    shell: program.endsWith(".cmd"),
  });
  if (child.pid !== undefined) started(child.pid);
  const forward = (signal) => {
    interruptedBy = signal;
    // A terminal sends its Ctrl-C to the whole process group; passing it on would make it two.
    if (signal === "SIGINT" && process.stdin.isTTY) return;
    child.kill(signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, forward);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => {
      for (const name of signals) process.off(name, forward);
      resolve(code ?? 128 + (constants.signals[signal] ?? 0));
    });
  });
}
