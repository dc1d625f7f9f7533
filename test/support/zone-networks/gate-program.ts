/**
 * The private network of a zone, with the addresses of its clusters: the other end of the cable of the zone's workers.
 * It runs in a network namespace of its own.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { answerParent, passConnections } from "#test/support/zone-networks/in-namespace.ts";

export type GateQuestion =
  | { readonly kind: "listen"; readonly port: number }
  /** Lays the cable to the namespace of a process. */
  | { readonly kind: "connect"; readonly pid: number; readonly addresses: readonly string[]; readonly plugged: boolean }
  | { readonly kind: "plug"; readonly plugged: boolean };

/** The address of the workers in their private network. */
const workersAddress = "10.0.0.1/24";

answerParent((question: GateQuestion) => {
  if (question.kind === "listen") return passConnections("0.0.0.0", question.port);
  if (question.kind === "plug") return plug(question.plugged);
  const { pid, addresses, plugged } = question;
  dropCable();
  ip("link", "add", "name", "clusters", "type", "veth", "peer", "name", "workers", "netns", `${pid}`);
  for (const address of addresses) ip("addr", "add", `${address}/24`, "dev", "clusters");
  plug(plugged);
  within(pid, "addr", "add", workersAddress, "dev", "workers");
  within(pid, "link", "set", "workers", "up");
});

function plug(plugged: boolean): void {
  ip("link", "set", "clusters", plugged ? "up" : "down");
}

/** Removes the cable of workers that were killed, if there is one: connections that outlive them keep it. */
function dropCable(): void {
  spawnSync("ip", ["link", "del", "clusters"]);
}

function ip(...words: readonly string[]): void {
  execFileSync("ip", words, { stdio: "pipe" });
}

function within(pid: number, ...words: readonly string[]): void {
  execFileSync("nsenter", ["--target", `${pid}`, "--net", "ip", ...words], { stdio: "pipe" });
}
