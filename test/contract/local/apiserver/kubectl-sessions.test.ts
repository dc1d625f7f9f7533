import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { startClusterHost } from "@starling/embedded-apiserver";
import { beforeAll, describe, expect, test } from "vitest";
import { startKubeApiServer } from "#local/clusters/kube-apiserver.ts";
import { locateKubectl } from "#shared/adapters/render/kubectl-binary.ts";
import { runConcurrently } from "#shared/base/run-concurrently.ts";
import { type KubectlSession, kubectlSessions } from "#test/contract/local/apiserver/kubectl-sessions.ts";
import { kubeAssets } from "#test/contract/targets.ts";
import { commandLine, runKubectlSession, type SessionServer, sideBySide } from "#test/support/kubectl-session.ts";
import { borrowServer } from "#test/support/server-pool/borrow-server.ts";

/**
 * kubectl must print the same as with a real kube-apiserver. The recorded sessions come from one, and
 * `STARLING_UPDATE_SESSIONS=1` records them again. If a real server is installed, the sessions run on it, too.
 * `STARLING_SHOW_SESSIONS=1` prints both servers' sessions side by side.
 */
const update = process.env.STARLING_UPDATE_SESSIONS === "1";
const show = process.env.STARLING_SHOW_SESSIONS === "1";
const kubectl = await locateKubectl(process.env.PATH ?? "");
/** Other versions of kubectl print other texts. */
const recordedWith = "v1.35.";
const version = execFileSync(kubectl, ["version", "--client", "-o", "yaml"], { encoding: "utf8" });
const speaks = version.includes(`gitVersion: ${recordedWith}`);
if (!speaks)
  console.log(`kubectl's sessions are skipped: ${kubectl} is not ${recordedWith}x, with which they were recorded`);

interface Started extends SessionServer {
  stop(): Promise<void>;
}

interface SessionTarget {
  readonly name: string;
  start(controllers: KubectlSession["controllers"]): Promise<Started>;
}

/** Pods never become ready here, because a real server without a kubelet leaves them as they were created. */
const readyAfterMs = 3_600_000;

const embedded: SessionTarget = {
  name: "the embedded API server",
  async start(controllers) {
    const host = await startClusterHost({ controllers, readyAfterMs });
    return { ...host.addCluster("test"), stop: host.stop };
  },
};

const assets = kubeAssets;
const real: SessionTarget | undefined =
  assets === undefined
    ? undefined
    : {
        name: "kube-apiserver",
        start: (controllers) =>
          controllers === "off" ? borrowServer(assets) : startKubeApiServer({ assets, controllers }),
      };

function canRun(target: SessionTarget, { controllers }: KubectlSession): boolean {
  return target !== real || controllers === "off" || assets?.kubeControllerManager !== undefined;
}

async function run(target: SessionTarget, session: KubectlSession): Promise<readonly string[]> {
  const started = await target.start(session.controllers);
  try {
    return await runKubectlSession(started, session, kubectl);
  } finally {
    await started.stop();
  }
}

function fixture({ name }: KubectlSession): URL {
  return new URL(`../../../fixtures/kubectl-sessions/${name}.txt`, import.meta.url);
}

function recorded(session: KubectlSession): readonly string[] {
  const file = fixture(session);
  return existsSync(file)
    ? readFileSync(file, "utf8")
        .trimEnd()
        .split(/\n\n(?=\$ )/)
    : [];
}

const patienceMs = 300_000;
const realAtOnce = 3;
const targets = real === undefined ? [embedded] : [real, embedded];

describe.skipIf(!speaks).each(targets)("kubectl on $name", (target) => {
  const sessions = kubectlSessions.filter((session) => canRun(target, session));
  const printed = new Map<string, readonly string[]>();
  // All sessions run at once, because they mostly wait.
  beforeAll(() => runConcurrently(sessions, target === embedded ? sessions.length : realAtOnce, play), patienceMs);

  async function play(session: KubectlSession): Promise<void> {
    const blocks = await run(target, session);
    printed.set(session.name, blocks);
    if (update && target === real) writeFileSync(fixture(session), `${blocks.join("\n\n")}\n`);
    if (show && target === embedded) {
      const left = [`${session.name} on kube-apiserver`, ...recorded(session)];
      console.log(sideBySide(left, [`${session.name} on ${target.name}`, ...blocks]));
    }
  }

  describe.each(sessions)("$name", (session) => {
    for (const [index, command] of session.commands.entries()) {
      test(`command ${index} prints what was recorded: ${commandLine(command)}`, () =>
        expect(printed.get(session.name)?.[index]).toBe(recorded(session)[index]));
    }
  });
});
