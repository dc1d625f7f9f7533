/** The knobs of an embedded cluster as words: `latency=500ms`, `throttle=0.2`, `network=hangs`. */

import { type ClusterFaults, clusterFaultsSchema } from "@starling/embedded-apiserver/faults";
import { LocalFailure } from "#local/base/local-failure.ts";
import { millisecondsOf, shareOf, splitSetting, unknownKnob, wrongValue } from "#local/faults/fault-setting.ts";
import { isJsonObject, type Json, parseJson, stringifyJson } from "#shared/base/json.ts";

/** Faults that are being changed: checked as a whole at the end. */
type Draft = Record<string, Json>;

interface Knob {
  /** Where it stands in `ClusterFaults`. */
  readonly path: readonly [string, string?];
  /** Undefined when the text is no value of this knob. */
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
  expected: "words with a comma between",
};

/** Which requests a fault meets: the same words for each fault that chooses. */
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
 * The faults after some settings; `NAME=off` ends one.
 * @throws LocalFailure for what is no setting, and for faults the cluster would refuse.
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

/** The settings that lead here from no fault. */
export function clusterSettings(faults: ClusterFaults): readonly string[] {
  return Object.entries(knobs).flatMap(([name, { path, write }]) => {
    const [outer, inner] = path;
    const value = new Map(Object.entries(faults)).get(outer) as Json | undefined;
    if (value === undefined) return [];
    if (inner === undefined) return [`${name}=${write(value)}`];
    const held = isJsonObject(value) ? value[inner] : undefined;
    if (held !== undefined) return [`${name}=${write(held)}`];
    // Without a share of its own, a fault meets every request.
    return inner === "probability" && name === outer ? [`${name}=1`] : [];
  });
}

/** True for what happens to connections: such a cluster needs a port of its own. */
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

/** The name of a whole fault ends all of it. */
function remove(faults: Draft, { path: [outer, inner] }: Knob, name: string): void {
  const held = faults[outer];
  if (inner === undefined || name === outer || !isJsonObject(held)) {
    delete faults[outer];
    return;
  }
  const { [inner]: _gone, ...rest } = held;
  faults[outer] = rest;
}

/** `errors.next` says how many, and not with which status: a fault like that needs its own word too. */
function requireWhole(faults: Draft, target: string): void {
  for (const name of ["latency", "errors"]) {
    const { path, expected } = knobs[name] ?? { path: [name], expected: "" };
    const fault = faults[name];
    if (!isJsonObject(fault) || fault[path[1] ?? ""] !== undefined) continue;
    throw new LocalFailure(`${target} needs ${name}=VALUE too: ${expected}`, {
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
