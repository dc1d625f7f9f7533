import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";

/** The processes of this machine with the text in their command line or environment; on Linux only. */
export function processesWith(text: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const about = ["cmdline", "environ"].map((file) => readOrNothing(`/proc/${pid}/${file}`));
      const command = (about[0] ?? "").replaceAll("\0", " ").trim();
      return about.some((part) => part.includes(text)) ? [`${pid} ${command}`] : [];
    });
}

function readOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** Whether a server listens on the port of 127.0.0.1. */
export function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

/** The TCP ports of 127.0.0.1 on which these processes listen; on Linux only. */
export function portsOf(pids: readonly number[]): readonly number[] {
  return pids.flatMap(endsOf).flatMap(({ local, state }) => (state === "0A" ? [local] : []));
}

/** The number of connections of the process to a port, including half-closed ones; on Linux only. */
export function connectionsTo(pid: number, port: number): number {
  return endsOf(pid).filter(({ remote }) => remote === port).length;
}

/** The number of open files, sockets and other descriptors of the process; on Linux only. */
export function descriptorsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

interface TcpEnd {
  readonly local: number;
  readonly remote: number;
  /** The state as the kernel writes it; `0A` means that it listens. */
  readonly state: string;
}

/** For IPv4. */
function endsOf(pid: number): readonly TcpEnd[] {
  const sockets = new Set(socketsOf(pid));
  return readOrNothing("/proc/net/tcp")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => sockets.has(fields[9] ?? ""))
    .map(([, local = "", remote = "", state = ""]) => ({ local: portIn(local), remote: portIn(remote), state }));
}

function portIn(address: string): number {
  return Number.parseInt(address.split(":")[1] ?? "", 16);
}

function socketsOf(pid: number): readonly string[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).flatMap((fd) => /^socket:\[(\d+)\]$/.exec(linkOf(`${folder}/${fd}`))?.[1] ?? []);
  } catch {
    return [];
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
