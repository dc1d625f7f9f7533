/**
 * Labels and annotations with which objects instruct the tool that applies them: those of Flux, Argo CD, Helm,
 * cli-utils, kapp, kluctl and Starling. Each is followed, reported as not followed, or refused when the cluster would
 * otherwise contain something that nobody intended. None is silently ignored.
 */
import { annotationsOf, labelsOf } from "#shared/kube/kube-object.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { isHook } from "#shared/kube/order-marks.ts";
import type { Manifest } from "#shared/source/manifests.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** Why a mark is not followed; `undefined` for a mark that is followed or has no effect. */
type Verdict = { readonly remark: string } | { readonly refused: string } | undefined;
/** @param isHook - whether the object is a hook, which runs and does not stay. */
type Judge = (value: string, isHook: boolean) => Verdict;

const fine: Judge = () => undefined;

/** @param verdicts - by value, in lower case. */
function values(verdicts: Readonly<Record<string, Verdict>>, otherwise: Verdict): (value: string) => Verdict {
  return (value) => {
    const lower = value.trim().toLowerCase();
    return Object.hasOwn(verdicts, lower) ? verdicts[lower] : otherwise;
  };
}

const unknownMark: Verdict = { remark: "is a mark that Starling does not know" };
const unknownValue: Verdict = { remark: "has a value that Starling does not know" };
const leave = "take the object out of the template's path, or remove the mark";

const ofHooks: Judge = (_value, isHook) =>
  isHook ? undefined : { remark: "has no effect, because the object is not a hook" };

const flux: Readonly<Record<string, Judge>> = {
  name: fine,
  namespace: fine,
  prune: values({ disabled: undefined, enabled: undefined }, unknownValue),
  substitute: values({ disabled: undefined, enabled: undefined }, unknownValue),
  decrypt: values({ disabled: undefined }, unknownValue),
  force: values(
    { disabled: undefined },
    { remark: "is ignored: when a field is immutable, the apply fails, and Starling does not recreate the object" },
  ),
  reconcile: values({ enabled: undefined, disabled: undefined }, unknownValue),
  ssa: values({ override: undefined, ignore: undefined, ifnotpresent: undefined, merge: undefined }, unknownValue),
};

/** The options, which a value separates by commas. Values that are Starling's default need no action. */
const argoSyncOptions: Readonly<Record<string, Verdict>> = {
  "prune=false": undefined,
  "prune=confirm": undefined,
  "prune=true": undefined,
  "delete=false": undefined,
  "delete=confirm": undefined,
  "delete=true": undefined,
  "serversideapply=true": undefined,
  "skipdryrunonmissingresource=true": undefined,
  "validate=true": undefined,
  "replace=false": undefined,
  "force=false": undefined,
  "serversideapply=false": { remark: "is ignored: Starling always uses server-side apply" },
  "validate=false": { remark: "is ignored: the API server validates each object" },
  "replace=true": { remark: "is ignored: Starling applies objects and never replaces them" },
  "force=true": { remark: "is ignored: Starling does not delete objects to recreate them" },
  "prunelast=true": {
    remark:
      "is followed in part: Starling deletes the objects that git no longer has after it has applied all others, but it does not wait for the last wave",
  },
};

function argoSyncOption(value: string): Verdict {
  const verdicts = value.split(",").map((option) => values(argoSyncOptions, unknownValue)(option));
  return verdicts.find((verdict) => verdict !== undefined);
}

const argo: Readonly<Record<string, Judge>> = {
  "tracking-id": fine,
  "compare-options": fine,
  "ignore-resource-updates": fine,
  "sync-options": argoSyncOption,
  // Their values are checked together with the order that they define: see `requireOrder`.
  "sync-wave": fine,
  hook: fine,
  "hook-delete-policy": ofHooks,
  "ignore-healthcheck": values({ false: undefined }, { remark: "is ignored: Starling checks the object's health" }),
};

const helm: Readonly<Record<string, Judge>> = {
  chart: fine,
  hook: fine,
  "hook-weight": ofHooks,
  "hook-delete-policy": ofHooks,
  "resource-policy": values({ keep: undefined, "": undefined }, unknownValue),
};

const config: Readonly<Record<string, Judge>> = {
  "depends-on": fine,
  "apply-time-mutation": () => ({
    refused:
      "takes a value from another object in the cluster, which Starling does not support; write the value, or use a parameter",
  }),
  "local-config": values(
    { false: undefined },
    { refused: `says that the object is not for the cluster, but Starling would apply it; ${leave}` },
  ),
  function: fine,
  index: fine,
  "merge-source": fine,
  origin: fine,
  path: fine,
  "resource-id": fine,
};

const kapp: Readonly<Record<string, Judge>> = {
  "delete-strategy": values({ "": undefined, orphan: undefined }, unknownValue),
  exists: () => ({ refused: `says that another tool creates the object, but Starling would create it; ${leave}` }),
  noop: () => ({ refused: `says that the object is not applied, but Starling would apply it; ${leave}` }),
};

const kluctl: Readonly<Record<string, Judge>> = {
  "skip-delete": values({ true: undefined, false: undefined }, unknownValue),
  hook: () => ({
    refused: `makes the object a hook of kluctl, but Starling would apply it with the other objects; ${leave}`,
  }),
};

const own: Readonly<Record<string, Judge>> = {
  prune: values(
    { disabled: undefined, false: undefined, enabled: undefined, true: undefined },
    { refused: 'must be "disabled" or "enabled"' },
  ),
  apply: values({ ifnotpresent: undefined }, { refused: 'must be "IfNotPresent"' }),
};

const leftToCluster: Judge = values(
  { ignore: { refused: `says that the object is not changed, but Starling would overwrite it; ${leave}` } },
  unknownValue,
);

interface Family {
  readonly prefix: string;
  readonly places: readonly ("label" | "annotation")[];
  readonly marks: Readonly<Record<string, Judge>>;
  /** The verdict of a mark with this prefix that is none of `marks`. */
  readonly otherwise: Verdict;
}

const onBoth = ["label", "annotation"] as const;
const onAnnotations = ["annotation"] as const;

const families: readonly Family[] = [
  { prefix: "kustomize.toolkit.fluxcd.io/", places: onBoth, marks: flux, otherwise: unknownMark },
  { prefix: "argocd.argoproj.io/", places: onAnnotations, marks: argo, otherwise: unknownMark },
  { prefix: "helm.sh/", places: onAnnotations, marks: helm, otherwise: unknownMark },
  { prefix: "config.kubernetes.io/", places: onAnnotations, marks: config, otherwise: unknownMark },
  {
    prefix: "client.lifecycle.config.k8s.io/",
    places: onAnnotations,
    marks: { deletion: values({ detach: undefined }, unknownValue), mutation: leftToCluster },
    otherwise: unknownMark,
  },
  {
    prefix: "cli-utils.sigs.k8s.io/",
    places: onAnnotations,
    marks: { "on-remove": values({ keep: undefined }, unknownValue) },
    otherwise: unknownMark,
  },
  { prefix: "kapp.k14s.io/", places: onAnnotations, marks: kapp, otherwise: unknownMark },
  { prefix: "kluctl.io/", places: onAnnotations, marks: kluctl, otherwise: unknownMark },
  {
    prefix: "starling.dev/",
    places: onBoth,
    marks: own,
    otherwise: {
      refused: "is not a mark of Starling; the marks of objects are starling.dev/prune and starling.dev/apply",
    },
  },
];

interface Found {
  readonly manifest: Manifest;
  readonly place: "label" | "annotation";
  readonly name: string;
  readonly value: string;
  readonly verdict: NonNullable<Verdict>;
}

const mostNamed = 10;
const maxValue = 60;

/**
 * The marks of the objects that Starling does not follow, one sentence for each mark and value.
 * @throws ManifestError `MarkRefused` that names all marks whose objects would end up differently from what the mark
 * says.
 */
export function readMarks(manifests: readonly Manifest[]): readonly string[] {
  const found = manifests.flatMap(marksOf);
  const refused = found.filter(({ verdict }) => "refused" in verdict);
  if (refused.length > 0) throw refusalOf(refused);
  const remarks = new Map<string, Found[]>();
  for (const mark of found) {
    const key = `${mark.name}=${mark.value}`;
    remarks.set(key, [...(remarks.get(key) ?? []), mark]);
  }
  return [...remarks.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [remarkText(first, others)],
  );
}

function marksOf(manifest: Manifest): readonly Found[] {
  const hook = isHook(manifest.object);
  const texts = { label: labelsOf(manifest.object), annotation: annotationsOf(manifest.object) };
  return families.flatMap(({ prefix, places, marks, otherwise }) =>
    places.flatMap((place) =>
      Object.entries(texts[place]).flatMap(([name, value]) => {
        if (!name.startsWith(prefix)) return [];
        const mark = name.slice(prefix.length);
        const verdict = Object.hasOwn(marks, mark) ? marks[mark]?.(value, hook) : otherwise;
        return verdict === undefined ? [] : [{ manifest, place, name, value, verdict }];
      }),
    ),
  );
}

function remarkText(first: Found, others: readonly Found[]): string {
  const more = others.length === 0 ? "" : ` and of ${others.length} more`;
  const why = "remark" in first.verdict ? first.verdict.remark : "";
  return `${shortValue(first)} of ${describeObject(first.manifest.id)}${more} ${why}`;
}

function shortValue({ name, value }: Found): string {
  return `${name}: ${value.length > maxValue ? `${value.slice(0, maxValue)}…` : value}`;
}

function refusalOf(refused: readonly Found[]): ManifestError {
  const [first, ...others] = refused;
  if (first === undefined || !("refused" in first.verdict)) throw new Error("no mark was refused");
  const names = others.slice(0, mostNamed).map((mark) => `${shortValue(mark)} of ${describeObject(mark.manifest.id)}`);
  const more = others.length > mostNamed ? ` and ${others.length - mostNamed} more` : "";
  const also = names.length === 0 ? "" : ` (also refused: ${names.join(", ")}${more})`;
  const { place, id } = first.manifest;
  const field = `metadata.${first.place}s["${first.name}"]`;
  const reason = `is ${JSON.stringify(first.value.slice(0, maxValue))}${also}: it ${first.verdict.refused}`;
  return new ManifestError("MarkRefused", { ...place, object: describeObject(id), field }, reason);
}
