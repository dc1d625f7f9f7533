import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";

/** Processes of this machine whose command line or environment has the text; Linux only. */
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

/** Whether something listens on the port of 127.0.0.1. */
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

/** TCP ports of 127.0.0.1 that these processes listen on; Linux only. */
export function portsOf(pids: readonly number[]): readonly number[] {
  const sockets = new Set(pids.flatMap(socketsOf));
  return readOrNothing("/proc/net/tcp")
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .flatMap((fields) => {
      const [, local = "", , state] = fields;
      return state === "0A" && sockets.has(fields[9] ?? "") ? [Number.parseInt(local.split(":")[1] ?? "", 16)] : [];
    });
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
