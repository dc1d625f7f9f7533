import { isJsonObject, type Json, type JsonObject } from "#shared/base/json.ts";
import { knownWords } from "#shared/base/known-words.ts";
import { helmWords as wordsOfYaml } from "#shared/source/helm/helm-words.ts";
import { kustomizationNames } from "#shared/source/kustomization.ts";
import { folded, isInline } from "#shared/source/kustomize/kustomize-scope.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/**
 * Replacements for the places where kustomize, Go's YAML and its JSON quote their input. The quoted words are not known
 * and would be hidden. The replacements say more than `***`. Each pattern extends to the last place where it can end,
 * because the quoted text can contain its own end (seen with kustomize 5.7).
 */
const quoted: readonly (readonly [RegExp, string])[] = [
  // kustomize tries a file that it cannot read as a folder, too, and reports both attempts.
  [
    /accumulation err='((?:(?!accumulation err=')[\s\S])*)': must build at directory: '[^']*': file is not directory/g,
    "$1",
  ],
  [
    /accumulation err='accumulating resources from '[^']*': '[^']*' must resolve to a file': (?:recursed accumulation of|recursed merging from|couldn't make target for) path /g,
    "in ",
  ],
  // The objects of a generator.
  [
    / from generator &\{[^{}]*\}: id resid\.ResId\{Gvk:resid\.Gvk\{Group:"[^"]*", Version:"[^"]*", Kind:"([^"]*)", isClusterScoped:\w+\}, Name:"([^"]*)", Namespace:"[^"]*"\}/,
    " of a generator: $1 $2",
  ],
  // kustomize prints an object that it cannot write completely, including the texts of a Secret.
  [/map\[string\]interface ?\{\}\{[\s\S]*\}/, "an object"],
  [
    /(namespace transformation produces ID conflict): [\s\S]*$/,
    "$1: two objects would have the same kind, name and namespace",
  ],
  // A literal without "=" is printed whole, and can be a value alone.
  [/literal sources \[[\s\S]*\]: invalid literal source [\s\S]*?, expected/g, "a literal of a generator: expected"],
  // A line of a multi-line text is read as a key.
  [/illegally repeats the key `[\s\S]*`/, "illegally repeats a key"],
  [/line \[[\d ]*\] has invalid utf8 bytes[\s\S]*$/, "a line is not UTF-8; save the file as UTF-8"],
  // The patch as written. kustomize reads it as a file name when it is not YAML.
  [/ with config: `(?:[\s\S]*`|[\s\S]*$)/, ""],
  [/ patch from \[(?:[\s\S]*\]|[\s\S]*$)/, " patch"],
  [/(must specify a target for (?:JSON )?patch|to set `patches.target` field:?) \[patch: [\s\S]*$/, "$1"],
  [/(patch and path can't be set at the same time|must specify one of patch and path) ?(?:in)?\n[\s\S]*$/, "$1"],
  [/\bdecoding \[(?:[\s\S]*\]\s*:|[\s\S]*$)/, "decoding a JSON patch:"],
  [/evalsymlink failure on '[\s\S]*$/, "an inline patch must be the YAML of one object"],
  [/\bUnexpected kind: [\s\S]*$/, "a JSON patch has an unknown op"],
  [/unknown patch strategy '[\s\S]*$/, "unknown $patch"],
  // A text that begins like an alias, has a tag that does not fit, or begins with a brace or a bracket.
  [/unknown anchor '[\s\S]*' referenced/, "unknown anchor referenced; put a text that begins with * in quotes"],
  [/cannot decode (!!\w+) `[\s\S]*` as a (!!\w+)/, "cannot decode $1 as a $2"],
  [/invalid map key: .*/, "invalid map key; put a text that begins with a brace or a bracket in quotes"],
  // The texts to which a replacement or a label does not fit, and a text that is too short for one.
  [/: node contents:[\s\S]*$/, ""],
  [/ out of bounds for value [\s\S]*$/, " out of bounds"],
  // All labels and annotations, including the last applied configuration.
  [/( in object \{\{[^{}]*\} \{\{[^{}]*\}) map\[[\s\S]*\]\}\}/, "$1}}"],
  // An address in memory, which changes with each run.
  [/&yaml\.RNode\{[\s\S]*\} is/, "a value is"],
];

/**
 * The words of the messages of kustomize, its JSON patches and Go, in addition to Helm's. A word that is missing here
 * is only hidden in the message.
 */
const ownWords = `
  about abs absolute access accumulateDirectory accumulating accumulation accumulator.OpenAPIDefinition add adding
  AdditionalSchemas additionalValuesFile address adds advertised AliasNode all ambiguous annotation annotations
  AnnotationsTransformer API api apiGroup apiVersion apply argsOneLiner base bases begins behavior below between
  binding blank boolean both bounds brace bracket build built builtin called Can candidate cast change chart clean
  close closed cluster code CommonAnnotations CommonLabels commonLabels compatibility Component component Components
  components config configFn ConfigMap configmap ConfigMapGenerator configuration configurations configuring conflict
  conflicting considering consistent content contents convert copy copyMerge couldn't CRD CRDs create creating custom
  CustomPlugin cycle data deAnchor define defines definition definitions delete delimiter Deployment dereference
  detected dir directory doc documentation DocumentNode doesn doesn't either element elements empty encountered
  encounters enough env environment equal Err err errors exact-match exactly exceeds exclusive exist exists exits
  expanding expect Expected expression extension extensions external Failed failure false fieldName FieldOptions
  fieldPath fieldPaths fieldSpec fieldSpecs fieldspecs fieldValue fifo File files Filter filter fix float folder
  following formatting FunctionSpec general generate generator GeneratorOptions generators get getting Group group GVK
  hit home ID Id id identifier identify IDs if illegally Image Images ImageTagTransformer inclusive indexing inline
  Input inside inspect integer internal Invalid InvalidNodeKindError isClusterScoped item items its JSON6902 jsonOp
  jsonpatch jsonpatch's keyword Kind kind known kubernetes Kustomization kustomization kustomize KV Label label Labels
  labels LabelTransformer least legacy legacySortOptions less like literals load loader loading look looks lookup make
  malformed MalformedYAMLError many Map mapped MappingNode maps marshalling match MatchAnyValue matched matches may
  memory merged merging meta Metadata mismatched modify most multi Multiple mutually Name named NamePrefix
  NameReference names NameSpace Namespace namespaces NamespaceTransformer NameSuffix needed New
  NewResMapFromConfigMapArgs NewResMapFromSecretArgs Node nodes noGrp non-empty non-file non-map noName nonexistent
  noNs notin noVer null objects OmitReaderAnnotations once op open OpenAPI openapi opened operations operator
  operators option options order origin original outside overwrite package pairs panic parent part Patch patch patched
  Patches patches patches.target PatchJson6902Transformer PatchStrategicMergeTransformer PatchTransformer Path
  PathGetter paths permitted please possible precondition prefix PrefixTransformer PreserveSeqIndent previous
  previously problem process processing produces provided provider put quotes reader received recognized recursed
  refer references referral referrals referrer refers RegexMatch registered regular removal remove render repeated
  repeats Replace replace replacement ReplacementField replacements ReplacementTransformer Replica
  ReplicaCountTransformer Replicas replicas ReplicaSet ReplicationController repo requirement requires res resid
  resid.Gvk resid.ResId resolve resolved Resource resource resource-ref ResourceList ResourceMeta resources
  ResourceTemplates resWrangler retrieve RNode rnode role roleRef Root root run running same ScalarNode scope Secret
  SecretGenerator security see seems segment select selected Selector selector selectors separator SequenceNode
  serialize setRoleBindingSubjects setting setup shouldn single SM so something sortOptions SortOrderTransformer
  source sources SourceSelector specified specify specs StatefulSet status store str strategic Strategic-Merge
  strategy StringMatch strings structured subject subjects subset suffix SuffixTransformer support supported take
  Target target targets TargetSelector templated TemplateLabels test testing The these timeout times Too tracking
  transformation transformconfig transformer transformers trouble true trying twice Unable unassigned under Unexpected
  unique unmarshalling update updating uri used utf validated validation Validator validator validators ValueReplacer
  Values valuesMerge var VarReference vars Version violated visited volume volumeClaimTemplate
  VolumeClaimTemplateLabels were wildcard within write writing written yet
`;
/** Line numbers and indices, which are no part of a value. */
const counted = /(?:\byaml: line \d+|\binvalid index: \d+)/g;
/** Fields of a kustomization that contain data or other documents. */
const dataFields = new Set(["literals", "patch", "sourcevalue", "annotations", "commonannotations", "valuesinline"]);
/** More than any hand-written kustomization has. Words beyond this limit are hidden. */
const maxBytes = 8 * 1024 * 1024;
const maxNames = 10_000;

/**
 * kustomize's message. Its own words stay visible, and so do the names of files, fields and objects. All other words
 * are hidden, because they can be texts of an object.
 * @param inputs - the files that kustomize got, by path.
 */
export function kustomizeMessage(said: string, inputs: ReadonlyMap<string, Uint8Array>): string {
  const counts = said.match(counted) ?? [];
  const text = quoted.reduce((before, [pattern, instead]) => before.replace(pattern, instead), said);
  const own = [ownWords, wordsOfYaml, ...quoted.map(([, instead]) => instead), ...counts];
  return knownWords(text, knownTo(inputs, own), { joints: "./" });
}

function* knownTo(inputs: ReadonlyMap<string, Uint8Array>, own: readonly string[]): Generator<string> {
  yield* own;
  yield* inputs.keys();
  const names: Names = { all: new Set(), prefixes: new Set([""]), suffixes: new Set([""]) };
  let bytes = 0;
  for (const [path, content] of inputs) {
    bytes += content.length;
    if (bytes > maxBytes || !/\.(?:ya?ml|json)$|^Kustomization$|\/Kustomization$/.test(path)) continue;
    const isKustomization = kustomizationNames.some((name) => path === name || path.endsWith(`/${name}`));
    yield* knownIn(new TextDecoder().decode(content), { isKustomization, names, seen: new Set() });
  }
  yield* withAffixes(names);
}

interface Names {
  readonly all: Set<string>;
  readonly prefixes: Set<string>;
  readonly suffixes: Set<string>;
}

function* withAffixes({ all, prefixes, suffixes }: Names): Generator<string> {
  let left = maxNames;
  for (const name of all) {
    for (const prefix of prefixes) {
      for (const suffix of suffixes) {
        if (left-- <= 0) return;
        yield prefix + name + suffix;
      }
    }
  }
}

interface Reading {
  readonly isKustomization: boolean;
  /** Values that aliases refer to are read once. */
  readonly seen: Set<object>;
  readonly names: Names;
}

function* knownIn(text: string, reading: Reading): Generator<string> {
  for (const value of readAny(text)) yield* knownOf(value, reading);
}

function readAny(text: string): readonly Json[] {
  try {
    return parseDocuments(text, "", { booleans: "1.2", twice: "last counts" }).map(({ value }) => value);
  } catch {
    return [];
  }
}

/**
 * Yields the words that may be shown: all keys; the names of an object; the place of a patch operation; in a
 * kustomization everything but data.
 */
function* knownOf(value: Json, reading: Reading): Generator<string> {
  if (typeof value === "object" && value !== null) {
    if (reading.seen.has(value)) return;
    reading.seen.add(value);
  }
  if (Array.isArray(value)) {
    for (const item of value as readonly Json[]) yield* knownOf(item, reading);
    return;
  }
  if (!isJsonObject(value)) {
    if (!reading.isKustomization || value === null) return;
    if (typeof value === "string" && isInline(value)) yield* knownIn(value, { ...reading, isKustomization: false });
    else yield String(value);
    return;
  }
  yield* calledBy(value, reading.names);
  for (const [key, member] of Object.entries(value)) {
    yield key;
    if (member === undefined) continue;
    const isData = reading.isKustomization && dataFields.has(folded(key));
    // An inline patch is a document.
    if (isData && typeof member === "string") yield* knownIn(member, { ...reading, isKustomization: false });
    else yield* knownOf(member, { ...reading, isKustomization: reading.isKustomization && !isData });
  }
}

function* calledBy(
  { apiVersion, kind, metadata, op, path, from, ...fields }: JsonObject,
  names: Names,
): Generator<string> {
  yield* texts(apiVersion, kind);
  if (isJsonObject(metadata)) {
    yield* texts(metadata.namespace);
    if (typeof metadata.name === "string") names.all.add(metadata.name);
  }
  if (op !== undefined) yield* texts(op, path, from);
  if (typeof fields.namePrefix === "string") names.prefixes.add(fields.namePrefix);
  if (typeof fields.nameSuffix === "string") names.suffixes.add(fields.nameSuffix);
}

function* texts(...values: readonly (Json | undefined)[]): Generator<string> {
  for (const value of values) if (typeof value === "string") yield value;
}
