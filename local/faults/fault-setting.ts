/** Parsing and errors that the settings of all targets share. */
import { LocalFailure } from "#local/base/local-failure.ts";
import { nearestName } from "#shared/base/nearest-name.ts";
import { quoted } from "#shared/base/shell-word.ts";

/** Splits a setting such as `latency=500ms` into name and value. A word without `=` has no value. */
export function splitSetting(setting: string): { readonly name: string; readonly value: string | undefined } {
  const at = setting.indexOf("=");
  return at < 0 ? { name: setting, value: undefined } : { name: setting.slice(0, at), value: setting.slice(at + 1) };
}

/** Reads `500ms`, `2s`, `1m` or a number of milliseconds; undefined for any other text. */
export function millisecondsOf(text: string): number | undefined {
  const parts = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(text);
  if (parts === null) return undefined;
  const unit = { ms: 1, s: 1000, m: 60_000 }[parts[2] ?? "ms"] ?? 1;
  return Math.round(Number(parts[1]) * unit);
}

/** Reads `0.1` or `10%`; undefined for a value outside 0 to 1. */
export function shareOf(text: string): number | undefined {
  const parts = /^(\d+(?:\.\d+)?)(%?)$/.exec(text);
  if (parts === null) return undefined;
  const share = parts[2] === "%" ? Number(parts[1]) / 100 : Number(parts[1]);
  return share <= 1 ? share : undefined;
}

export function unknownKnob(target: string, setting: string, known: readonly string[]): LocalFailure {
  const { name, value = "VALUE" } = splitSetting(setting);
  const near = nearestName(name, known);
  const remark = near === undefined ? `; it has ${known.join(", ")}` : ` (did you mean ${near}?)`;
  const next = `starling local faults set ${target} ${near === undefined ? "NAME=VALUE" : setting.includes("=") ? quoted(`${near}=${value}`) : near}`;
  return new LocalFailure(`${target} has no fault "${name}"${remark}`, { exit: "wrongInput", next });
}

export function wrongValue(target: string, setting: string, expected: string): LocalFailure {
  const { name, value } = splitSetting(setting);
  return new LocalFailure(`${name} of ${target} is "${value ?? ""}"; expected ${expected}, or off`, {
    exit: "wrongInput",
    next: `starling local faults set ${target} ${name}=VALUE`,
  });
}
