import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { type ClusterHost, startClusterHost } from "@starling/embedded-apiserver";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type CliFixture, startCliFixture } from "#test/integration/cli/cli-fixture.ts";

const { PATH, KUBEBUILDER_ASSETS } = process.env;
let cli: CliFixture;
let host: ClusterHost;

function kubeconfig(cluster: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({
    contexts: [
      { name: "mine", context: { cluster: "one", user: "me" } },
      { name: "prod", context: { cluster: "gone", user: "me" } },
    ],
    clusters: [{ name: "one", cluster: { server: "https://127.0.0.1:9", ...cluster } }],
    users: [{ name: "me", user: { token: "t" } }],
  });
}

function state(folder: string, text: string): void {
  mkdirSync(join(cli.folder, folder));
  writeFileSync(join(cli.folder, folder, "identity.json"), text);
}

const identity = {
  version: 1,
  accessKey: { accessKeyId: "a", secretAccessKey: "s" },
  gitTls: { key: "", cert: "" },
  clusters: { kind: "embedded", count: 3 },
  ports: {},
};

beforeAll(async () => {
  cli = await startCliFixture();
  host = await startClusterHost();
  host.addCluster("prod-1");
  cli.write("good.yaml", kubeconfig({}));
  cli.write("live.yaml", host.kubeconfig());
  cli.write("insecure.yaml", kubeconfig({ "insecure-skip-tls-verify": true }));
  cli.write("clear-text.yaml", kubeconfig({ server: "http://10.0.0.1:8080" }));
  cli.write("proxied.yaml", kubeconfig({ "proxy-url": "http://proxy.example.com:3128" }));
  cli.write("no-ca.yaml", kubeconfig({ "certificate-authority": "pki/ca.crt" }));
  cli.write("broken.yaml", "{a: [1");
  cli.write("list.yaml", "contexts: 3\n");
  cli.write("a-file", "");
  state("newer", JSON.stringify({ ...identity, version: 2 }));
  state("older", JSON.stringify({ ...identity, version: undefined }));
  state("garbage", "{");
  state("wrong", JSON.stringify({ ...identity, clusters: { kind: "vm" } }));
  state("three", JSON.stringify(identity));
  state("own", JSON.stringify({ ...identity, clusters: { kind: "kubeconfig", path: "/k", context: "prod" } }));
});
afterEach(() => {
  process.env.PATH = PATH;
  if (KUBEBUILDER_ASSETS === undefined) delete process.env.KUBEBUILDER_ASSETS;
  else process.env.KUBEBUILDER_ASSETS = KUBEBUILDER_ASSETS;
});
afterAll(async () => {
  await host.stop();
  await cli.stop();
});

const own = "--context mine --kubeconfig";

type Row = readonly [what: string, line: string, code: number, message: string, next: string];

const beforeAnythingStarts: readonly Row[] = [
  [
    "two kinds of clusters",
    "up --clusters 3 --envtest",
    2,
    "--clusters, --kubeconfig and --envtest exclude",
    "local up",
  ],
  ["too many clusters", "up --clusters 301", 2, "--clusters is 301; at most 300", "local up --clusters 12"],
  ["a context of nothing", "up --context mine", 2, "--context needs --kubeconfig", "--context mine"],
  ["a port out of range", "up --git-port 70000", 2, "--git-port is 70000; at most 65535", "--git-port 8080"],
  [
    "one port for two services",
    "up --port 8080 --cluster-port 8080",
    2,
    "--port and --cluster-port are both 8080",
    "--port 8080",
  ],
  ["a folder that is a file", "up --state a-file/state", 2, "cannot write to", "local up --state DIR"],
  [
    "a state of a newer version",
    "up --state newer",
    3,
    "has version 2, but this Starling reads version 1; a newer Starling wrote it",
    "--state DIR",
  ],
  [
    "a state of an older version",
    "up --state older",
    3,
    "has no version, but this Starling reads version 1; an older Starling wrote it",
    "--state DIR",
  ],
  ["a state that is no JSON", "up --state garbage", 3, "garbage/identity.json", "local up --state DIR"],
  ["a state that is something else", "up --state wrong", 3, "is not a state file of Starling: clusters.kind", "DIR"],
  [
    "a state with other clusters",
    "up --state three --clusters 4",
    2,
    "has 3 embedded clusters (--clusters 3)",
    "--clusters 4",
  ],
  [
    "a state with a cluster of one's own",
    "up --state own --envtest",
    2,
    "has the cluster of context prod",
    "--envtest",
  ],
  ["no such kubeconfig", `up ${own} nope.yaml`, 2, "there is no ", "--kubeconfig ~/.kube/config --context NAME"],
  ["a kubeconfig that is no YAML", `up ${own} broken.yaml`, 2, "cannot read ", "local up --kubeconfig"],
  [
    "a file that is not a kubeconfig",
    `up ${own} list.yaml`,
    2,
    "list.yaml is not a kubeconfig: contexts: ",
    "kubectl config view",
  ],
  ["a kubeconfig without --context", "up --kubeconfig good.yaml", 2, "no context of ", "--context mine"],
  ["an unknown context", "up --kubeconfig good.yaml --context prd", 2, '"prd"; it has mine, prod', "--context prod"],
  [
    "a context without its cluster",
    "up --kubeconfig good.yaml --context prod",
    2,
    "names cluster gone, which",
    "config view",
  ],
  [
    "a server that is not verified",
    `up ${own} insecure.yaml`,
    2,
    "insecure-skip-tls-verify: Starling sends its token only to a server that it can verify",
    "set-cluster one",
  ],
  [
    "a server in clear text",
    `up ${own} clear-text.yaml`,
    2,
    "http://10.0.0.1:8080; Starling supports only https",
    "config view",
  ],
  [
    "a server behind a proxy",
    `up ${own} proxied.yaml`,
    2,
    "has proxy-url http://proxy.example.com:3128",
    "config view",
  ],
  [
    "an authority that is missing",
    `up ${own} no-ca.yaml`,
    2,
    "pki/ca.crt, which cannot be read",
    "--certificate-authority=FILE",
  ],
  [
    "a port for a cluster that has one",
    `up ${own} good.yaml --cluster-port 6443`,
    2,
    "has a port already",
    "without --cluster-port",
  ],
  ["a server that does not answer", `up ${own} good.yaml`, 3, "does not answer: ", "--context mine version"],
  [
    "no terminal for the consent",
    "up --kubeconfig live.yaml --context prod-1",
    1,
    "there is no terminal",
    "--context prod-1 --yes",
  ],
  ["faults of what is down", "faults", 1, "local is down: nothing runs in ", "starling local up"],
  ["faults set on what is down", "faults set aws hostile --state x", 1, "local is down: nothing runs in ", "/x"],
  ["a seed that is none", "faults set aws hostile --seed -x", 2, '--seed is "-x"; expected a whole number', "--seed 7"],
  ["a kubeconfig of what is down", "kubeconfig", 1, "local is down: nothing runs in ", "starling local up"],
];

describe("a local installation that runs already", () => {
  const repository = { url: "https://127.0.0.1:4321/shop.git", config: "/s/git.config", ca: "/s/ca.pem" };
  let process: ChildProcess | undefined;

  /** Makes the files of a local installation, and a process that looks like its machine. */
  function runs(folder: string, more: object): void {
    process ??= spawn(globalThis.process.execPath, ["-e", "setInterval(() => {}, 1000)", "local", "serve"]);
    const path = join(cli.folder, folder);
    const access = join(path, "context.json");
    const context = { endpoint: "http://127.0.0.1:9", region: "eu-west-1", credentials: key, namespace: "default" };
    mkdirSync(path);
    writeFileSync(access, JSON.stringify({ current: "local", contexts: { local: context } }));
    const machine = {
      pid: process.pid,
      startedAt: "2026-11-20T08:00:00.000Z",
      folder: path,
      clusters: 3,
      kept: { kind: "embedded", count: 3 },
      endpoint: context.endpoint,
      ports: { api: 9, git: 4321 },
      kubeconfig: join(path, "kubeconfig"),
      control: { url: "http://127.0.0.1:9", token: "t" },
      access,
      ...more,
    };
    writeFileSync(join(path, "machine.json"), JSON.stringify(machine));
  }
  const key = { accessKeyId: "a", secretAccessKey: "s" };

  afterAll(() => {
    process?.kill();
  });

  test("local up refuses another repository, and says how to proceed", async () => {
    runs("with-shop", { repository });
    runs("with-none", {});
    for (const [folder, has] of [
      ["with-shop", repository.url],
      ["with-none", "none"],
    ]) {
      const ran = await cli.run(["local", "up", "--state", `${folder}`, "--repo", "other"]);
      expect(ran).toMatchObject({ code: 2, out: "" });
      expect(ran.err).toContain(`--repo is ${join(cli.folder, "other")}, but the running machine has ${has}\n`);
      expect(ran.err).toContain(`next: starling local down --state ${join(cli.folder, `${folder}`)}`);
    }
  });

  test("local up says where the repository is when it is the same, or none is given", async () => {
    runs("same", { repository: { ...repository, credentials: { secret: "starling/git/local", kind: "basic" } } });
    for (const asked of [[], ["--repo", "work/shop"], ["--repo", repository.url]]) {
      const ran = await cli.run(["local", "up", "--state", "same", ...asked]);
      expect(ran).toMatchObject({ code: 0, out: expect.stringMatching(/^local is up: /) });
      expect(ran.err).toContain(`local is already up\nrepository ${repository.url}\n`);
      expect(ran.err).toContain(`push to it: git -c include.path=/s/git.config push ${repository.url} HEAD\n`);
    }
  });

  test("local up prints a push that works where GIT_SSL_CAINFO names other authorities", async () => {
    runs("proxied", { repository: { ...repository, credentials: { secret: "starling/git/local", kind: "basic" } } });
    const env = { GIT_SSL_CAINFO: "/etc/ssl/corporate.pem" };
    const ran = await cli.run(["local", "up", "--state", "proxied"], { env });
    expect(ran.err).toContain(
      `push to it: env -u GIT_SSL_CAINFO git -c include.path=/s/git.config push ${repository.url} HEAD\n`,
    );
  });

  test("local status searches one folder, which it names with the option for others", async () => {
    const ran = await cli.run("local status");
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(/^local is down: nothing runs in \/.*starling\/local\n$/);
    expect(ran.err).toContain(
      "next: starling local up   (for another state folder: starling local status --state DIR)",
    );
    expect(await cli.run("local status --state nowhere")).toMatchObject({
      code: 1,
      out: `local is down: nothing runs in ${join(cli.folder, "nowhere")}\n`,
    });
  });
});

describe("missing prerequisites of local", () => {
  test.each(beforeAnythingStarts)("%s: local %s exits with %i", async (_what, line, code, message, next) => {
    const ran = await cli.run(["local", ...line.split(" ")]);
    expect(ran).toMatchObject({ code, out: "" });
    const said = ran.err.trimEnd().split("\n");
    expect(said.at(-2)).toMatch(/^error: /);
    expect(said.at(-2)).toContain(message);
    expect(said.at(-1)).toMatch(/^ {2}next: /);
    expect(said.at(-1)).toContain(next);
  });

  test("local up lists what it would create in the user's cluster, and creates nothing without consent", async () => {
    host.clearRequests();
    const ran = await cli.run("local up --kubeconfig live.yaml --context prod-1", { answer: "no" });
    expect(ran.code).toBe(1);
    expect(ran.err).toContain(`context prod-1 of ${join(cli.folder, "live.yaml")} (https://127.0.0.1:`);
    for (const made of [
      "  namespace starling-system\n",
      "  serviceaccount starling-system/starling-local, with a token for 24h that Starling renews while it runs\n",
      "  clusterrolebinding starling-local: cluster-admin for that account\n",
      "-n starling-system delete clusterrolebinding/starling-local serviceaccount/starling-local\n",
      "Continue? [y/N] ",
      "error: nothing was changed\n",
    ]) {
      expect(ran.err).toContain(made);
    }
    expect(host.requests().filter(({ method }) => method !== "GET")).toEqual([]);
  });

  const flags = ["--port", "--git-port", "--cluster-port"] as const;
  test.each(flags)("the error for a taken port names %s, which chooses another", async (flag) => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as { port: number };
    const ran = await cli.run(`local up --state taken${flag} ${flag} ${port}`);
    other.close();
    expect(ran.code).toBe(3);
    expect(ran.err).toContain(`error: port ${port} of 127.0.0.1 is in use by another process (${flag})\n`);
    expect(ran.err).toContain(`  next: starling local up ${flag} PORT `);
    expect(existsSync(join(cli.folder, `taken${flag}`, "pid"))).toBe(false);
  });

  test("the error for a missing kube-apiserver names the searched folders, and how to get one", async () => {
    process.env.KUBEBUILDER_ASSETS = cli.folder;
    const ran = await cli.run("local up --envtest");
    expect(ran.code).toBe(3);
    expect(ran.err).toContain(
      `KUBEBUILDER_ASSETS is ${cli.folder}, which does not contain executable etcd and kube-apiserver`,
    );
    expect(ran.err).toContain("  next: KUBEBUILDER_ASSETS=DIR starling local up --envtest ");
  });

  test("local up reports that git is missing, and leaves no files", async () => {
    const bin = join(cli.folder, "bin");
    mkdirSync(bin);
    for (const name of ["sh", "env"]) symlinkSync(`/usr/bin/${name}`, join(bin, name));
    chmodSync(bin, 0o755);
    process.env.PATH = bin;
    const ran = await cli.run("local up --state no-git");
    expect(ran).toMatchObject({ code: 3, out: "" });
    expect(ran.err).toContain("error: git is not on the PATH; install git 2.28 or later\n  next: git --version ");
    expect(existsSync(join(cli.folder, "no-git", "pid"))).toBe(false);
  });
});
