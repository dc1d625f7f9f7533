/** The addresses that the workers of a deployed function reach, in a network that has a server at each of them. */
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import type { Asked } from "#test/support/cluster-addresses-program.ts";

const program = new URL("../../../support/cluster-addresses-program.ts", import.meta.url).pathname;

/** Addresses of private networks, at which clusters are. */
const reached = ["10.1.2.3", "172.16.3.4", "192.168.5.6", "100.64.1.2", "fd12:3456::1", "203.0.113.9"];
/** Addresses of the machine, of its metadata and of its credentials. */
const refused = ["169.254.169.254", "169.254.170.2", "169.254.100.1", "fd00:ec2::254", "127.0.0.1", "127.8.9.1", "::1"];
/** Other spellings of refused addresses. A URL keeps these; it turns decimal and hexadecimal ones into the usual one. */
const spelled = ["::ffff:169.254.169.254", "::ffff:127.0.0.1", "::ffff:a9fe:aa02", "0.0.0.0", "::"];
const names = new Map([
  ["ten.example", ["10.1.2.3"]],
  ["shared.example", ["100.64.1.2"]],
  ["ula.example", ["fd12:3456::1"]],
  ["metadata.example", ["169.254.169.254"]],
  ["credentials.example", ["169.254.170.2"]],
  ["metadata6.example", ["fd00:ec2::254"]],
  ["runtime.example", ["127.0.0.1"]],
  ["mapped.example", ["::ffff:169.254.169.254"]],
  // A name that answers with both: only the address of the network is tried.
  ["both.example", ["169.254.169.254", "10.1.2.3"]],
]);

const prepare = [
  "ip link set lo up",
  ...[...reached, ...refused]
    .filter((address) => address !== "127.0.0.1" && address !== "::1")
    .map((address) => `ip addr add ${address}/${address.includes(":") ? "128 nodad" : "32"} dev lo`),
];

/** Whether this machine lets a process make a network and a list of hosts of its own. */
function hasNetworks(): boolean {
  try {
    execFileSync("unshare", ["-rnm", "bash", "-c", [...prepare, "mount --bind /dev/null /etc/hosts"].join(" && ")]);
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!hasNetworks())("in a network with servers at private addresses and at those of metadata", () => {
  const hosts = [...reached, ...refused, ...spelled, ...names.keys(), "localhost"];
  let asked: readonly Asked[];
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), "starling-addresses-"));
    try {
      const file = join(folder, "hosts");
      const lines = [...names].flatMap(([name, addresses]) => addresses.map((address) => `${address} ${name}\n`));
      writeFileSync(file, `127.0.0.1 localhost\n${lines.join("")}`);
      const run = `exec ${process.execPath} ${program} "$1"`;
      const script = [...prepare, `mount --bind ${file} /etc/hosts`, run].join(" && ");
      const wish = JSON.stringify({ addresses: [...reached, ...refused], hosts });
      const { stdout } = await promisify(execFile)("unshare", ["-rnm", "bash", "-c", script, "bash", wish]);
      asked = JSON.parse(stdout);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 120_000);

  const answersOf = (host: string) =>
    asked.filter((each) => each.host === host).map(({ by, answer, connected }) => [by, answer, ...connected]);
  test.each([
    ...reached.map((address) => [address, address]),
    ["ten.example", "10.1.2.3"],
    ["shared.example", "100.64.1.2"],
    ["ula.example", "fd12:3456::1"],
    ["both.example", "10.1.2.3"],
  ])("a cluster at %s is reached at %s", (host, address) => {
    expect(answersOf(host)).toEqual([
      ["endpoint", "reached", address],
      ["override", "reached", address],
      // The certificate has names only.
      ["eks", host === address ? "ERR_TLS_CERT_ALTNAME_INVALID" : "reached", address],
    ]);
  });

  test.each([
    ...refused,
    ...spelled,
    "metadata.example",
    "credentials.example",
    "metadata6.example",
    "runtime.example",
    "mapped.example",
    "localhost",
  ])("nothing at %s gets a connection", (host) => {
    expect(answersOf(host)).toEqual(["endpoint", "override", "eks"].map((by) => [by, "AddressRefused"]));
  });
});
