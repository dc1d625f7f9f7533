/** The TCP ports on which a process and its descendants listen, read from Linux. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const listen = "0A";

export function listeningPorts(pid: number): readonly number[] {
  const inodes = new Set(familyOf(pid).flatMap(socketsOf));
  const lines = ["tcp", "tcp6"].flatMap((name) =>
    readFileSync(`/proc/net/${name}`, "utf8").trim().split("\n").slice(1),
  );
  const ports = lines.flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    return state === listen && inodes.has(inode) ? [Number.parseInt(local.split(":")[1] ?? "", 16)] : [];
  });
  return [...new Set(ports)].sort((left, right) => left - right);
}

function familyOf(pid: number): readonly number[] {
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && parentOf(name) === pid);
  return [pid, ...children.flatMap((child) => familyOf(Number(child)))];
}

function parentOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")")).split(" ")[2]);
  } catch {
    return undefined;
  }
}

function socketsOf(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? [];
    } catch {
      return [];
    }
  });
}
