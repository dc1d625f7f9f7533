import { knownWords } from "#shared/base/known-words.ts";
import { type Chart, isTemplate } from "#shared/source/helm/chart.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";

/**
 * The words of the messages of Helm, Go's templates, their functions and YAML. A word that is missing here is hidden in
 * the message. A value never becomes visible because the list is incomplete.
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
/** How many, and in which line. This is no part of a value. */
const counted = /(?:want(?: at least)? \d+ got \d+|\byaml: line \d+)/g;

/**
 * Helm's message with all words hidden but Helm's own and those in a template of the chart, because other words can be
 * values.
 */
export function withoutWordsOfValues(chart: Chart, said: string, whose: "chart" | "helm"): string {
  const counts = whose === "helm" ? (said.match(counted) ?? []) : [];
  return knownWords(said, knownTo(chart, [helmWords, ...counts]));
}

/** Without `values.yaml` and the files that a template reads, because their content is data. */
function* knownTo({ files }: Chart, own: readonly string[]): Generator<string> {
  yield* own;
  for (const [path, content] of files) {
    if (isTemplate(path) || path === chartFile) yield new TextDecoder().decode(content);
  }
}
