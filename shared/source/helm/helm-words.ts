import { knownWords } from "#shared/base/known-words.ts";
import { type Chart, isTemplate } from "#shared/source/helm/chart.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";

/**
 * What Helm, Go's templates, their functions and YAML say of themselves. A word that is missing here is hidden from who
 * reads the message, and nothing else: a value is never told because something was forgotten.
 */
export const helmWords = `
  a after alias allowed alphabetic already an anchor and any append are args argument arguments array as associated at
  bad base64 be been before beginning block bool broken but by byte bytes calling can can't cannot certificate
  character characters chart's chunk closing collection column command compact comparable compare comparison Compile
  compile compiling constraint contain containing contains context continue control conversion converting could
  dateModify day decode decoded decoding deeply default defined depth did digit directive do document does duplicate
  duration during else encoding end entry EOF Error error escape evaluate evaluating exceeded execute executing execution
  exhausted expected expecting exponent failed field file find first float32 float64 flow for format found from
  function functions Go go got gotpl greater has have host hour illegal improper in include incompatible incomplete
  indentation index indicator initial input int int16 int32 int64 int8 interface into invalid ip is it it's iterate
  JSON json key keys larger last left length limit line list literal looking map map[string]interface map[string]string
  mapping mappings marshal marshaling maximum merge message metadata metadata.annotations metadata.labels
  metadata.name method minimum minute missing month more move multiple must name namespace negative nested new nil no
  node non-function none not nothing number number/letter numeric object octal odd of on one only operand operation or
  out over overflow packet pair parameter parse parsed parsing path pattern plain pointer port positive post precision
  prepend properties push quote quoted range raw read recursion reference referenced reflect regexp rendering renders
  repetition required reserved rest reverse right runtime scalar schema scheme second semantic semver sequence set
  short should simple SimpleHead.apiVersion SimpleHead.kind size slice slice/array space special sprig.certificate
  stack start stream string struct superfluous syntax tab tabs tag template templates text than that the there this time to
  token toml too tpl trailing type types uint uint16 uint32 uint64 uint8 unable unclosed undefined unexpected uniq
  unknown unmarshal unmarshaling unquoted unrecognized unsupported unterminated untyped URL url use user userinfo
  using UTF-8 util.SimpleHead valid value values variable verb version violate violates want was when while whitespace with without
  wrong YAML yaml year zero zone
`;
/** How many, and where in the text: no part of it. */
const counted = /(?:want(?: at least)? \d+ got \d+|\byaml: line \d+)/g;

/** What Helm said, without the words of values: those are left that are its own, or stand in a template of the chart. */
export function withoutWordsOfValues(chart: Chart, said: string, whose: "chart" | "helm"): string {
  const counts = whose === "helm" ? (said.match(counted) ?? []) : [];
  return knownWords(said, knownTo(chart, [helmWords, ...counts]));
}

/** Not `values.yaml`, nor files that a template reads: what stands there is data. */
function* knownTo({ files }: Chart, own: readonly string[]): Generator<string> {
  yield* own;
  for (const [path, content] of files) {
    if (isTemplate(path) || path === chartFile) yield new TextDecoder().decode(content);
  }
}
