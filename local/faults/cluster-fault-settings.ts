/** The faults of an embedded cluster as words: `latency=500ms`, `throttle=0.2`, `network=hangs`. */

import { type ClusterFaults, clusterFaultsSchema } from "@starling/embedded-apiserver/faults";
import { LocalFailure } from "#local/base/local-failure.ts";
import { millisecondsOf, shareOf, splitSetting, unknownKnob, wrongValue } from "#local/faults/fault-setting.ts";
import { isJsonObject, type Json, parseJson, stringifyJson } from "#shared/base/json.ts";

/** Faults during a change; they are validated at the end. */
type Draft = Record<string, Json>;

interface Knob {
  /** The path in `ClusterFaults`. */
  readonly path: readonly [string, string?];
  /** Undefined when the text is not a valid value. */
  readonly read: (text: string) => Json | undefined;
  readonly write: (value: Json) => string;
  readonly expected: string;
}

const duration = { read: millisecondsOf, write: (value: Json) => `${value}ms`, expected: "a duration such as 500ms" };
const share = { read: shareOf, write: String, expected: "a share of requests from 0 to 1, such as 0.2 or 20%" };
const word = { read: (text: string) => text, write: String };
const count = {
  read: (text: string) => (/^\d+$/.test(text) ? Number(text) : undefined),
  write: String,
  expected: "a whole number",
};
const words = {
  read: (text: string) => text.split(",").filter((part) => part !== ""),
  write: String,
  expected: "words separated by commas",
};

/** The words that select requests, which several faults share. */
function chosen(fault: string): Readonly<Record<string, Knob>> {
  return {
    [`${fault}.next`]: { path: [fault, "next"], ...count },
    [`${fault}.methods`]: { path: [fault, "methods"], ...words },
    [`${fault}.path`]: { path: [fault, "pathIncludes"], ...word, expected: "a part of the path such as /configmaps/" },
  };
}

const phase = { ...word, expected: "before or after" };

const knobs: Readonly<Record<string, Knob>> = {
  latency: { path: ["latency", "ms"], ...duration },
  "latency.jitter": { path: ["latency", "jitterMs"], ...duration },
  throttle: { path: ["throttle", "probability"], ...share },
  "throttle.retryAfterSeconds": { path: ["throttle", "retryAfterSeconds"], ...count },
  ...chosen("throttle"),
  errors: { path: ["errors", "status"], ...count, expected: "a status from 500 to 599" },
  "errors.share": { path: ["errors", "probability"], ...share },
  "errors.phase": { path: ["errors", "phase"], ...phase },
  ...chosen("errors"),
  resets: { path: ["resets", "probability"], ...share },
  "resets.phase": { path: ["resets", "phase"], ...phase },
  ...chosen("resets"),
  certificate: { path: ["certificate"], ...word, expected: "expired" },
  network: { path: ["network"], ...word, expected: "refused or hangs" },
  unavailableApis: { path: ["unavailableApis"], ...words, expected: "APIServices such as v1beta1.metrics.k8s.io" },
  webhooks: { path: ["webhooks"], read: readList, write: stringifyJson, expected: "a JSON list of webhooks" },
};

export const clusterKnobs: readonly string[] = Object.keys(knobs);

/**
 * Applies settings to faults. `NAME=off` ends one fault. @throws LocalFailure for an unknown setting, and for faults
 * that the cluster would refuse.
 */
export function withClusterSettings(
  faults: ClusterFaults,
  { target, settings }: { readonly target: string; readonly settings: readonly string[] },
): ClusterFaults {
  const next: Draft = structuredClone(faults) as Draft;
  for (const setting of settings) {
    const { name, value = "" } = splitSetting(setting);
    const knob = Object.hasOwn(knobs, name) ? knobs[name] : undefined;
    if (knob === undefined) throw unknownKnob(target, setting, clusterKnobs);
    if (value === "off") {
      remove(next, knob, name);
      continue;
    }
    const read = value === "" ? undefined : knob.read(value);
    if (read === undefined) throw wrongValue(target, setting, knob.expected);
    put(next, knob, read);
  }
  requireWhole(next, target);
  const parsed = clusterFaultsSchema.safeParse(next);
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0] ?? { path: [], message: "" };
  const name = nameOf(path) ?? path.join(".");
  const inside = path.slice(knobs[name]?.path.length ?? 0).join(".");
  const expected = `expected ${knobs[name]?.expected ?? "something else"}`;
  throw new LocalFailure(`${name} of ${target}: ${expected} (${inside === "" ? "" : `${inside}: `}${message})`, {
    exit: "wrongInput",
    next: `starling local faults set ${target} ${name}=VALUE`,
  });
}

/** The settings that turn no faults into these faults. */
export function clusterSettings(faults: ClusterFaults): readonly string[] {
  return Object.entries(knobs).flatMap(([name, { path, write }]) => {
    const [outer, inner] = path;
    const value = new Map(Object.entries(faults)).get(outer) as Json | undefined;
    if (value === undefined) return [];
    if (inner === undefined) return [`${name}=${write(value)}`];
    const held = isJsonObject(value) ? value[inner] : undefined;
    if (held !== undefined) return [`${name}=${write(held)}`];
    // A fault without a probability affects every matching request.
    return inner === "probability" && name === outer ? [`${name}=1`] : [];
  });
}

/** True for faults of connections. A cluster with such faults needs a port of its own. */
export function concernsConnections({ network, certificate }: ClusterFaults): boolean {
  return network !== undefined || certificate !== undefined;
}

function put(faults: Draft, { path: [outer, inner] }: Knob, value: Json): void {
  if (inner === undefined) {
    faults[outer] = value;
    return;
  }
  const held = faults[outer];
  faults[outer] = { ...(isJsonObject(held) ? held : {}), [inner]: value };
}

/** The name of a whole fault removes all of its parts. */
function remove(faults: Draft, { path: [outer, inner] }: Knob, name: string): void {
  const held = faults[outer];
  if (inner === undefined || name === outer || !isJsonObject(held)) {
    delete faults[outer];
    return;
  }
  const { [inner]: _gone, ...rest } = held;
  faults[outer] = rest;
}

/** A part such as `errors.next` is not enough, because an error also needs its status. */
function requireWhole(faults: Draft, target: string): void {
  for (const name of ["latency", "errors"]) {
    const { path, expected } = knobs[name] ?? { path: [name], expected: "" };
    const fault = faults[name];
    if (!isJsonObject(fault) || fault[path[1] ?? ""] !== undefined) continue;
    throw new LocalFailure(`${target} also needs ${name}=VALUE: ${expected}`, {
      exit: "wrongInput",
      next: `starling local faults set ${target} ${name}=${name === "errors" ? 503 : "100ms"} …`,
    });
  }
}

function nameOf(path: readonly PropertyKey[]): string | undefined {
  return Object.keys(knobs).find((name) => {
    const [outer, inner] = knobs[name]?.path ?? [""];
    return outer === path[0] && (inner === undefined || inner === path[1]);
  });
}

function readList(text: string): Json | undefined {
  try {
    const value = parseJson(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
