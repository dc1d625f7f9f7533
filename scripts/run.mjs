/**
 * `node scripts/run.mjs demo|test|bench|nightly|starling|zone-template [arguments]`: runs a command of the README in a fresh clone,
 * under any Node from 20 on and without other installed software. It installs the packages of package-lock.json if they
 * are missing, then runs the command under the Node 24 of the dependencies. `install` only installs. `test
 * --require-real` fails when no test ran on a real kube-apiserver.
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

/** The package with the Node of this platform, if package-lock.json has one. */
const pinnedNode = `node_modules/node-${process.platform}-${process.arch}`;
/** Starling needs this version, because it runs TypeScript directly. */
const nodeMajor = 24;

const commands = {
  demo: ["local/stories/demo.ts"],
  test: ["node_modules/vitest/vitest.mjs", "run"],
  bench: ["test/bench/main.ts"],
  nightly: ["test/nightly/main.ts"],
  starling: ["cli/main.ts"],
  "zone-template": ["infra/bin/zone-template.ts"],
};

/** The last signal that this process passed to the running program. */
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
 * Makes node_modules match package-lock.json. It installs in a separate folder and then moves the result, so that a
 * killed process leaves nothing half done. If two processes do this at once, the second one finds the result of the
 * first.
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
        ? `npm ci failed (exit code ${code}); nothing was started. Run \`npm ci\` to see the reason.`
        : "Interrupted; the next run installs the dependencies from the beginning.",
    );
    process.exitCode = interruptedBy === undefined ? code : 128 + constants.signals[interruptedBy];
  } catch (error) {
    console.error(
      `cannot install node_modules: ${error.message}; nothing was started. Run \`npm ci\` to see the reason.`,
    );
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
  // The output of the command itself is for scripts, so npm writes to standard error.
  const at = { folder, stdout: process.stderr };
  return npm?.endsWith("js") === true
    ? await run(process.execPath, [npm, ...options], at)
    : await run(process.platform === "win32" ? "npm.cmd" : "npm", options, at);
}

/** Links to workspaces are relative, so they stay valid after the move. */
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
    // A folder exists: the result of another process, or an older installation.
  }
  if (isStamped()) return;
  renameSync(modules, before);
  renameSync(installed, modules);
}

/** Removes folders of killed processes. No installation takes an hour. */
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

/**
 * Whether `npm install` or `npm ci`, run by hand, has left every locked package. npm writes its own record last, too.
 */
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

/** The Node that package-lock.json pins by its digest, or the running one if there is none for this platform. */
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

/** Runs a program with the repository's tools first on the PATH. Resolves to its exit code. */
function run(program, parameters, { folder = root, stdout = "inherit" } = {}) {
  const child = spawn(program, parameters, {
    cwd: folder,
    stdio: ["inherit", stdout, "inherit"],
    env: {
      ...process.env,
      // The user's current folder. npm sets this before it changes to the folder of the package.
      INIT_CWD: relative(root, process.cwd()) === "" ? (process.env.INIT_CWD ?? root) : process.cwd(),
      PATH: `${join(modules, ".bin")}${delimiter}${process.env.PATH ?? ""}`,
    },
    shell: program.endsWith(".cmd"),
  });
  const forward = (signal) => {
    interruptedBy = signal;
    // A terminal sends Ctrl-C to the whole process group, so passing it on would send it twice.
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
