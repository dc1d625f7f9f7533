/** A hostile folder names a program in every git setting that can have one. Starling runs none of them. */
import { execFile, execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const home = fs.mkdtempSync(join(tmpdir(), "starling-hostile-"));
const log = join(home, "ran");
const far = "https://127.0.0.1:9/app.git";
const identity = ["-c", "user.name=ana", "-c", "user.email=ana@example.com"];

/** The environment hides all git settings of this machine. */
const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: "1", GIT_TERMINAL_PROMPT: "0" };

interface Hostile {
  /** The setting whose value is the program. */
  readonly setting: string;
  /** Further settings that git needs to run the program. */
  readonly with?: readonly (readonly [name: string, value: string])[];
  /**
   * The command with which a plain git runs the program. Absent if git runs it only at a terminal, in another tool, or
   * in a later version.
   */
  readonly runs?: readonly string[];
}

/** The settings in git-config(1), gitattributes(5) and githooks(5) of git 2.39 and later. */
const hostile: readonly Hostile[] = [
  { setting: "core.fsmonitor", runs: ["check-ignore", "-q", "state"] },
  { setting: "core.editor", runs: [...identity, "commit", "--allow-empty"] },
  { setting: "core.sshCommand", runs: ["ls-remote", "ssh://127.0.0.1:9/app.git"] },
  { setting: "core.gitProxy", runs: ["ls-remote", "git://127.0.0.1:9/app.git"] },
  { setting: "core.hooksPath", runs: ["update-ref", "refs/heads/other", "HEAD"] },
  { setting: "sequence.editor", runs: [...identity, "rebase", "-i", "--root", "--autostash"] },
  { setting: "diff.external", runs: ["diff"] },
  { setting: "diff.mine.command", runs: ["diff"] },
  { setting: "diff.mine.textconv", runs: ["diff"] },
  { setting: "filter.mine.clean", runs: ["status"] },
  { setting: "filter.mine.smudge", runs: ["checkout", "--", "a.yaml"] },
  { setting: "filter.mine.process", with: [["filter.mine.required", "true"]], runs: ["status"] },
  { setting: "credential.helper", runs: ["credential", "fill"] },
  { setting: "credential.https://127.0.0.1:9.helper", runs: ["credential", "fill"] },
  { setting: "gpg.program", runs: [...identity, "commit", "--allow-empty", "-S", "-m", "Sign"] },
  {
    setting: "gpg.ssh.program",
    with: [
      ["gpg.format", "ssh"],
      ["user.signingKey", "/dev/null"],
    ],
    runs: [...identity, "commit", "--allow-empty", "-S", "-m", "Sign"],
  },
  {
    setting: "gpg.ssh.defaultKeyCommand",
    with: [["gpg.format", "ssh"]],
    runs: [...identity, "commit", "--allow-empty", "-S", "-m", "Sign"],
  },
  { setting: "gpg.openpgp.program", with: [["log.showSignature", "true"]], runs: ["log"] },
  { setting: "trailer.mine.command", runs: ["interpret-trailers", "--trailer", "mine=a", "a.yaml"] },
  { setting: "trailer.mine.cmd", runs: ["interpret-trailers", "--trailer", "mine=a", "a.yaml"] },
  { setting: "tar.mine.command", runs: ["archive", "--format=mine", "HEAD"] },
  { setting: "remote.there.uploadpack", with: [["remote.there.url", home]], runs: ["fetch", "there"] },
  { setting: "remote.there.receivepack", with: [["remote.there.url", home]], runs: ["push", "there", "HEAD"] },
  {
    setting: "remote.lost.uploadpack",
    with: [
      ["core.repositoryFormatVersion", "1"],
      ["extensions.partialClone", "lost"],
      ["remote.lost.url", home],
      ["remote.lost.promisor", "true"],
    ],
    runs: ["cat-file", "-e", "a".repeat(40)],
  },
  { setting: "alias.ls-file", with: [], runs: ["ls-file"] },
  // The folder replaces the address of a repository.
  { setting: "url.ext.insteadOf", runs: ["ls-remote", far] },
  ...[
    ...["core.pager", "core.askPass", "core.alternateRefsCommand", "pager.status", "pager.ls-files", "pager.ls-remote"],
    ...["pager.check-ignore", "pager.config", "interactive.diffFilter", "uploadpack.packObjectsHook", "imap.tunnel"],
    ...["merge.mine.driver", "mergetool.mine.cmd", "difftool.mine.cmd", "browser.mine.cmd", "man.mine.cmd"],
    ...["hook.mine.command", "sendemail.smtpServer", "instaweb.httpd", "alias.ls-files", "alias.ls-remote"],
    ...["alias.check-ignore", "submodule.inner.update"],
  ].map((setting) => ({ setting })),
];
const hooks = ["post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc"];

/** A harmless folder; each hostile folder begins as a copy of it. */
const plain = join(home, "plain");

function git(folder: string, ...args: readonly string[]): void {
  execFileSync("git", ["-C", folder, ...identity, ...args], { stdio: "ignore", env });
}

/** Signs the last commit, so that git has a signature to verify. */
function sign(folder: string): void {
  const options = { encoding: "utf8", env } as const;
  const commit = execFileSync("git", ["-C", folder, "cat-file", "commit", "HEAD"], options);
  const signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n none\n -----END PGP SIGNATURE-----\n\n";
  const input = commit.replace("\n\n", `\n${signature}`);
  const id = execFileSync("git", ["-C", folder, "hash-object", "-t", "commit", "-w", "--stdin"], { ...options, input });
  git(folder, "reset", "-q", "--soft", id.trim());
}

/** Makes a program that logs its name and ends without reading its input, because git would wait for it otherwise. */
function programFor(name: string): string {
  const program = join(home, "programs", name.replaceAll(/[^\w.]/g, "-"));
  fs.writeFileSync(program, `#!/bin/sh\necho ${JSON.stringify(name)} >> "${log}"\n`, { mode: 0o755 });
  return program;
}

/** Gives the settings as text for a file, because `git config` itself would run some of the programs. */
function configLines({ setting, with: more = [] }: Hostile): string {
  const program = programFor(setting);
  return [ownLine(setting, program), ...more, ...(setting === "hook.mine.command" ? [hookEvent] : [])]
    .flatMap(([name, value]) => (value === "" ? [] : [configLine(name, value)]))
    .join("");
}

const hookEvent = ["hook.mine.event", "reference-transaction"] as const;

function ownLine(setting: string, program: string): readonly [string, string] {
  if (setting === "url.ext.insteadOf") return [`url.ext::${program} %S .insteadOf`, "https://127.0.0.1:9/"];
  if (setting !== "core.hooksPath") return [setting, setting.startsWith("alias.") ? `!${program}` : program];
  const folder = `${program}.d`;
  fs.mkdirSync(folder, { recursive: true });
  for (const name of hooks) fs.copyFileSync(program, join(folder, name));
  return [setting, folder];
}

function configLine(name: string, value: string): string {
  const [, section = "", subsection, key = ""] = /^([^.]+)\.(?:(.*)\.)?([^.]+)$/.exec(name) ?? [];
  return `[${section}${subsection === undefined ? "" : ` "${subsection}"`}]\n${key} = ${JSON.stringify(value)}\n`;
}

function folderWith(name: string, ...all: readonly Hostile[]): string {
  const folder = join(home, "folders", name.replaceAll(/[^\w.]/g, "-"));
  fs.cpSync(plain, folder, { recursive: true });
  const protocols = configLine("protocol.allow", "always") + configLine("protocol.ext.allow", "always");
  // Settings of an included file have the same effect as settings of the file itself.
  const included = join(folder, ".git", "included");
  fs.writeFileSync(included, protocols + all.map(configLines).join(""));
  fs.appendFileSync(join(folder, ".git", "config"), configLine("include.path", included));
  return folder;
}

beforeAll(() => {
  for (const folder of ["programs", "folders", "plain"]) fs.mkdirSync(join(home, folder));
  fs.writeFileSync(join(plain, "a.yaml"), "{}\n");
  fs.writeFileSync(join(plain, ".gitignore"), "state\n");
  git(plain, "init", "-q", "-b", "main", ".");
  git(plain, "add", ".");
  git(plain, "commit", "-qm", "Begin");
  sign(plain);
  // Git before 2.39.4 fetches this commit when the folder is copied, if the settings name a remote for it.
  fs.writeFileSync(join(plain, ".git", "refs", "heads", "gone"), `${"b".repeat(40)}\n`);
  fs.writeFileSync(join(plain, ".git", "info", "attributes"), "* filter=mine diff=mine merge=mine\n");
  fs.writeFileSync(join(plain, "a.yaml"), "[]\n");
});

afterAll(() => {
  fs.rmSync(home, { recursive: true, force: true });
});

function ran(): readonly string[] {
  return fs.existsSync(log) ? [...new Set(fs.readFileSync(log, "utf8").trim().split("\n"))] : [];
}

describe("a plain git", () => {
  const shown = hostile.flatMap(({ runs = [], ...one }) => (runs.length === 0 ? [] : [{ ...one, runs }]));
  test.each(shown)("a plain git runs the program that a folder names in $setting", ({ runs, ...one }) => {
    const cwd = folderWith(`control-${one.setting}`, one);
    fs.rmSync(log, { force: true });
    const input = runs.includes("credential") ? "protocol=https\nhost=127.0.0.1:9\n\n" : "";
    try {
      execFileSync("git", runs, { cwd, env, input, stdio: ["pipe", "ignore", "ignore"], timeout: 10_000 });
    } catch {
      // Only the log of the program matters here.
    }
    expect(ran()).toEqual([one.setting]);
  });
});

/** Everything for which Starling starts git; `here` is the working directory. */
const asked: readonly (readonly [legend: string, file: string, call: string])[] = [
  ["finds a repository far away", "local/git/user-repository.ts", `findRepository({ repo: "${far}" })`],
  ["finds the folder's repository", "local/git/user-repository.ts", "findRepository({ repo: here })"],
  [
    "lists a repository far away",
    "local/git/repository-paths.ts",
    `repositoryPaths({ folder: undefined, repo: "${far}", commit: "${"a".repeat(40)}", ref: undefined })`,
  ],
  [
    "lists the folder's commit",
    "local/git/repository-paths.ts",
    'repositoryPaths({ folder: here, repo: here, commit: "HEAD", ref: undefined })',
  ],
  [
    "lists a commit that is missing",
    "local/git/repository-paths.ts",
    "repositoryPaths({ folder: here, commit: lost })",
  ],
  [
    "looks for another tool's",
    "local/git/foreign-manifests.ts",
    'foreignManifests({ folder: here, commit: "HEAD" }, ".")',
  ],
  ["reads the history", "local/git/git-command.ts", 'runUsersGit(["log"], { folder: here })'],
  ["looks for what is in no commit", "local/git/uncommitted.ts", 'isUncommitted(here, ".")'],
  ["copies the folder", "local/git/repository.ts", 'copyRepository(here, here + "-copied.git")'],
  ["makes a repository", "local/git/repository.ts", 'initRepository(here + "-made.git")'],
  ["asks whether a state folder is ignored", "local/serve/prepare-folder.ts", 'prepareFolder(here + "/state")'],
  [
    "reads the folder as an artifact",
    "cli/seeing/local-artifact.ts",
    'readLocalArtifact({ cwd: here }, ".", { paths: ["."] })',
  ],
  ["asks for a login", "cli/seeing/git-login.ts", `gitLogin({ env: process.env }, "${far}")`],
];

/** No server listens there, and no such commit exists. */
const failing = ["finds a repository far away", "lists a repository far away", "lists a commit that is missing"];

/** Does everything in each folder, in a process of its own. @returns how each thing ended there. */
async function standingIn(folders: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const modules = asked.map(([, file], index) => `import * as all${index} from ${JSON.stringify(fileUrl(file))};`);
  const calls = asked.map(([legend, , call], index) => `[${JSON.stringify(legend)}, (here) => all${index}.${call}],`);
  const script = `
    ${modules.join("\n")}
    const lost = "${"a".repeat(40)}";
    const calls = [${calls.join("\n")}];
    for (const here of ${JSON.stringify(folders)}) {
      process.chdir(here);
      for (const [legend, call] of calls) {
        const ended = await call(here).then(() => "done", (error) => error.message.slice(0, 200));
        console.log(JSON.stringify([here, legend, ended]));
      }
    }`;
  const options = { env: { ...env, ...variables }, timeout: 280_000, maxBuffer: 16_000_000 };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], options);
  const lines = stdout.trim().split("\n");
  return lines.map((line): readonly [here: string, legend: string, ended: string] => JSON.parse(line));
}

function fileUrl(file: string): string {
  return `file://${resolve(file)}`;
}

function expectDone(outcomes: Awaited<ReturnType<typeof standingIn>>, folders: readonly string[]): void {
  const expected = folders.flatMap((here) => asked.map(([legend]) => [here, legend, !failing.includes(legend)]));
  expect(outcomes.map(([here, legend, ended]) => [here, legend, ended === "done"])).toEqual(expected);
}

test("a git that Starling starts runs no program that the folder names, whatever the command", async () => {
  const folders = [...hostile.map((one) => folderWith(one.setting, one)), folderWith("all", ...hostile)];
  for (const folder of folders) {
    for (const name of hooks) fs.copyFileSync(programFor(`hook ${name}`), join(folder, ".git", "hooks", name));
  }
  fs.rmSync(log, { force: true });
  const outcomes = await standingIn(folders);
  expect(ran()).toEqual([]);
  expectDone(outcomes, folders);
}, 300_000);

test("a git that Starling starts uses no repository, template, editor, pager or diff of its environment", async () => {
  const folder = folderWith("environment");
  const named = folderWith("named", ...hostile);
  const programs = [
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
  ];
  const all = [...programs, "GIT_SSH", "GIT_SSH_COMMAND", "GIT_PROXY_COMMAND", "EDITOR", "VISUAL", "PAGER", "BROWSER"];
  const monitor = programFor("GIT_CONFIG_VALUE_0");
  fs.rmSync(log, { force: true });
  const outcomes = await standingIn([folder], {
    ...Object.fromEntries(all.map((name) => [name, programFor(name)])),
    ...{ GIT_CONFIG_COUNT: "1", GIT_CONFIG_KEY_0: "core.fsmonitor", GIT_CONFIG_VALUE_0: monitor },
    ...{ GIT_DIR: join(named, ".git"), GIT_WORK_TREE: named, GIT_INDEX_FILE: join(named, ".git", "index") },
    ...{ GIT_COMMON_DIR: join(named, ".git"), GIT_OBJECT_DIRECTORY: join(named, ".git", "objects") },
    ...{ GIT_CONFIG: join(named, ".git", "config"), GIT_TEMPLATE_DIR: join(named, ".git") },
  });
  // The program returns a login, like the user's own credential helpers.
  expect(ran()).toEqual(["GIT_ASKPASS"]);
  expectDone(outcomes, [folder]);
}, 60_000);
