/**
 * `node scripts/run.mjs demo|test|bench|nightly|starling [arguments]`: the commands of the README, from a fresh clone,
 * under any Node from 20 on and with nothing installed. Installs what package-lock.json names when it is not there yet,
 * then runs the command under the Node 24 that comes with the dependencies; `install` does no more than the first. `test --require-real` fails when no check was made on a
 * real kube-apiserver.
 */
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { constants } from "node:os";
import { delimiter, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const modules = join(root, "node_modules");
const stampName = ".starling-lock-sha256";
const installs = join(root, ".starling", "installs");

/** Where the package with the Node of this machine is, if package-lock.json has one. */
const pinnedNode = `node_modules/node-${process.platform}-${process.arch}`;
/** What Starling is written for: it runs TypeScript as it is. */
const nodeMajor = 24;

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

/**
 * Leaves node_modules as package-lock.json says. It is installed in a folder of this process's own and then put in its
 * place: whoever is killed meanwhile leaves nothing half done, and of two at once the second finds it there.
 */
async function install() {
  if (isStamped()) return;
  if (holdsLockedPackages()) {
    writeFileSync(join(modules, stampName), lockDigest());
    return;
  }
  console.error("Installing the dependencies of package-lock.json (npm ci); this happens once.");
  mkdirSync(installs, { recursive: true });
  removeAbandoned();
  const folder = mkdtempSync(join(installs, "at-"));
  try {
    const code = await npmCi(folder);
    if (isStamped()) return;
    if (code === 0) {
      putInPlace(join(folder, "node_modules"), join(folder, "before"));
      return;
    }
    console.error(
      interruptedBy === undefined
        ? `npm ci failed (exit code ${code}); nothing was started. Run "npm ci" by hand to see why.`
        : "Interrupted; the next run installs the dependencies from the beginning.",
    );
    process.exitCode = interruptedBy === undefined ? code : 128 + constants.signals[interruptedBy];
  } catch (error) {
    console.error(`node_modules could not be installed (${error.message}); nothing was started. Run "npm ci" by hand.`);
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  process.exit();
}

async function npmCi(folder) {
  for (const name of ["package.json", "package-lock.json", ...workspaceManifests()]) {
    cpSync(join(root, name), join(folder, name));
  }
  const npm = process.env.npm_execpath;
  const options = ["ci", "--include=dev", "--include=optional", "--no-audit", "--no-fund", "--loglevel=error"];
  // What the command itself prints is for scripts.
  const at = { folder, stdout: process.stderr };
  return npm?.endsWith("js") === true
    ? await run(process.execPath, [npm, ...options], at)
    : await run(process.platform === "win32" ? "npm.cmd" : "npm", options, at);
}

/** The links to workspaces are relative, so they fit where they are put. */
function workspaceManifests() {
  const paths = Object.keys(JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages);
  return paths
    .filter((path) => path !== "" && !path.includes("node_modules"))
    .map((path) => join(path, "package.json"));
}

function putInPlace(installed, before) {
  mkdirSync(installed, { recursive: true });
  writeFileSync(join(installed, stampName), lockDigest());
  try {
    renameSync(installed, modules);
    return;
  } catch {
    // There is something: what another process has just put there, or what was locked before.
  }
  if (isStamped()) return;
  renameSync(modules, before);
  renameSync(installed, modules);
}

/** What processes left that were killed: nobody installs for an hour. */
function removeAbandoned() {
  for (const name of readdirSync(installs)) {
    const { mtimeMs = Date.now() } = statSync(join(installs, name), { throwIfNoEntry: false }) ?? {};
    if (Date.now() - mtimeMs > 3_600_000) rmSync(join(installs, name), { recursive: true, force: true });
  }
}

function isStamped() {
  const stamp = join(modules, stampName);
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
        ? path !== pinnedNode && (entry.optional === true || entry.devOptional === true)
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

/** The Node that package-lock.json pins by its digest, or the running one where there is none for this machine. */
function nodeBinary() {
  const bundled = join(root, pinnedNode, "bin", "node");
  if (majorOf(bundled) >= nodeMajor) return bundled;
  if (Number.parseInt(process.versions.node, 10) >= nodeMajor) return process.execPath;
  console.error(
    `Starling needs Node ${nodeMajor} or newer. This is ${process.version}, and package-lock.json pins no working Node for ` +
      `${process.platform}-${process.arch}. Install Node ${nodeMajor} from https://nodejs.org and run the command again.`,
  );
  process.exit(1);
}

function majorOf(binary) {
  const { stdout } = spawnSync(binary, ["--version"], { encoding: "utf8" });
  return Number.parseInt(stdout?.slice(1) ?? "", 10) || 0;
}

/** Runs a program with the repository's tools first on the PATH; resolves to its exit code. */
function run(program, parameters, { folder = root, stdout = "inherit" } = {}) {
  const child = spawn(program, parameters, {
    cwd: folder,
    stdio: ["inherit", stdout, "inherit"],
    env: {
      ...process.env,
      // Where the user stands: npm names it before it goes to the package's folder itself.
      INIT_CWD: relative(root, process.cwd()) === "" ? (process.env.INIT_CWD ?? root) : process.cwd(),
      PATH: `${join(modules, ".bin")}${delimiter}${process.env.PATH ?? ""}`,
    },
    shell: program.endsWith(".cmd"),
  });
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
