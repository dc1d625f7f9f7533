/**
 * Labels and annotations by which objects tell the tool that applies them what to do: Flux's, Argo CD's, Helm's,
 * cli-utils', kapp's, kluctl's and Starling's own. Each is carried out, told of as not carried out, or refused where the
 * cluster would come to hold something that nobody meant. None is passed over in silence.
 */
import { annotationsOf, labelsOf } from "#shared/kube/kube-object.ts";
import { describeObject } from "#shared/kube/object-id.ts";
import { isHook } from "#shared/kube/order-marks.ts";
import type { Manifest } from "#shared/source/manifests.ts";
import { ManifestError } from "#shared/source/yaml/manifest-error.ts";

/** Why a mark is not carried out; `undefined` for one that is, and for one that asks for nothing. */
type Verdict = { readonly told: string } | { readonly refused: string } | undefined;
/** @param isHook - the object is run, and not there to stay. */
type Judge = (value: string, isHook: boolean) => Verdict;

const fine: Judge = () => undefined;

/** @param verdicts - by value, in lower case. */
function values(verdicts: Readonly<Record<string, Verdict>>, otherwise: Verdict): (value: string) => Verdict {
  return (value) => {
    const lower = value.trim().toLowerCase();
    return Object.hasOwn(verdicts, lower) ? verdicts[lower] : otherwise;
  };
}

const unknownMark: Verdict = { told: "is a mark that Starling does not know" };
const unknownValue: Verdict = { told: "has a value that Starling does not know" };
const leave = "take the object out of the template's path, or remove the mark";

const ofHooks: Judge = (_value, isHook) => (isHook ? undefined : { told: "is of no use: the object is no hook" });

const flux: Readonly<Record<string, Judge>> = {
  name: fine,
  namespace: fine,
  prune: values({ disabled: undefined, enabled: undefined }, unknownValue),
  substitute: values({ disabled: undefined, enabled: undefined }, unknownValue),
  decrypt: values({ disabled: undefined }, unknownValue),
  force: values(
    { disabled: undefined },
    { told: "is not honoured: an object of which a field cannot be changed fails, and is not made anew" },
  ),
  reconcile: values({ enabled: undefined, disabled: undefined }, unknownValue),
  ssa: values({ override: undefined, ignore: undefined, ifnotpresent: undefined, merge: undefined }, unknownValue),
};

/** One by one, as they stand between commas; where the value is the default there is nothing to do. */
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
  "serversideapply=false": { told: "is not honoured: objects are applied by the server" },
  "validate=false": { told: "is not honoured: the API server checks each object" },
  "replace=true": { told: "is not honoured: objects are applied, and none is replaced" },
  "force=true": { told: "is not honoured: no object is deleted to be made anew" },
  "prunelast=true": {
    told: "is honoured in part: what git has no more is deleted after all else was applied, and the last wave is not waited for",
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
  // What they say is checked with the order that it makes: see `requireOrder`.
  "sync-wave": fine,
  hook: fine,
  "hook-delete-policy": ofHooks,
  "ignore-healthcheck": values({ false: undefined }, { told: "is not honoured: its health counts" }),
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
      "takes a value from another object in the cluster, which Starling does not; write the value, or use a parameter",
  }),
  "local-config": values(
    { false: undefined },
    { refused: `says that it is not for the cluster, and Starling would apply it; ${leave}` },
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
  exists: () => ({ refused: `says that another makes the object, and Starling would; ${leave}` }),
  noop: () => ({ refused: `keeps an object from being applied, which Starling would do; ${leave}` }),
};

const kluctl: Readonly<Record<string, Judge>> = {
  "skip-delete": values({ true: undefined, false: undefined }, unknownValue),
  hook: () => ({
    refused: `makes it a hook of kluctl's, and Starling would apply it with the other objects; ${leave}`,
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
  { ignore: { refused: `keeps an object from being changed, and Starling would apply over it; ${leave}` } },
  unknownValue,
);

interface Family {
  readonly prefix: string;
  readonly places: readonly ("label" | "annotation")[];
  readonly marks: Readonly<Record<string, Judge>>;
  /** Of the prefix, and none of these. */
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
      refused:
        "is no mark of Starling's; those that there are on objects are starling.dev/prune and starling.dev/apply",
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
 * What the objects ask for by marks and do not get, in words, one for each mark and value.
 * @throws ManifestError `MarkRefused` for what would come out otherwise than the mark says, naming all of them.
 */
export function readMarks(manifests: readonly Manifest[]): readonly string[] {
  const found = manifests.flatMap(marksOf);
  const refused = found.filter(({ verdict }) => "refused" in verdict);
  if (refused.length > 0) throw refusalOf(refused);
  const told = new Map<string, Found[]>();
  for (const mark of found) {
    const key = `${mark.name}=${mark.value}`;
    told.set(key, [...(told.get(key) ?? []), mark]);
  }
  return [...told.values()].flatMap(([first, ...others]) => (first === undefined ? [] : [toldText(first, others)]));
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

function toldText(first: Found, others: readonly Found[]): string {
  const more = others.length === 0 ? "" : ` and of ${others.length} more`;
  const why = "told" in first.verdict ? first.verdict.told : "";
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
  const also = names.length === 0 ? "" : ` (refused, too: ${names.join(", ")}${more})`;
  const { place, id } = first.manifest;
  const field = `metadata.${first.place}s["${first.name}"]`;
  const reason = `is ${JSON.stringify(first.value.slice(0, maxValue))}${also}: it ${first.verdict.refused}`;
  return new ManifestError("MarkRefused", { ...place, object: describeObject(id), field }, reason);
}
