import { plainLine } from "#shared/base/plain-text.ts";
import type { LogItem } from "#shared/fleet/api/objects.ts";

/** The fields that name the object of a line come first; the others follow in the logged order. */
const first = ["kind", "namespace", "name", "cluster", "rollout", "revision", "phase", "reason"];
/** Fields that are not repeated after the first ones. */
const left = new Set([...first, "owner"]);
const widest = 8;

/** `2026-11-23T06:12:54.321Z apply    INFO  sync reconciled  cluster=c1 phase=Ready id=push-…` */
export function formatLogLine({ at, function: from, level, message, correlationId, fields }: LogItem): string {
  const { kind, namespace, name } = fields;
  const about = typeof name === "string" ? [`${[namespace, kind, name].filter(Boolean).join("/")}`] : [];
  const named = first.slice(3).flatMap((field) => pair(field, fields[field]));
  const others = Object.entries(fields).flatMap(([field, value]) => (left.has(field) ? [] : pair(field, value)));
  const id = correlationId === undefined ? [] : [`id=${correlationId}`];
  const said = [...about, ...named, ...others, ...id].join(" ");
  return plainLine(`${at} ${from.padEnd(widest)} ${level.padEnd(5)} ${message}  ${said}`);
}

function pair(field: string, value: unknown): readonly string[] {
  if (value === undefined || value === "") return [];
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return [`${field}=${/[\s"=]/.test(text) ? JSON.stringify(text) : text}`];
}
