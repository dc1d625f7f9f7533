/**
 * What kustomize, Go's YAML and its JSON quote of what they are given: any of it may be a text of a Secret, or the whole patch of
 * one. Each runs to the last place where it can end, for what is quoted may hold its own end (seen: kustomize 5.7).
 */
const quoted: readonly (readonly [RegExp, string])[] = [
  // Where it cannot write an object it prints it whole, and a Secret's texts with it.
  [/map\[string\]interface ?\{\}\{[\s\S]*\}/, "an object"],
  // What has no "=" is named whole, and may be the value alone.
  [/literal sources \[[\s\S]*\]: invalid literal source [\s\S]*?, expected/g, "a literal of a generator: expected"],
  // A line of a text that goes over several is taken for a key.
  [/illegally repeats the key `[\s\S]*`/, "illegally repeats a key"],
  [/line \[[\d ]*\] has invalid utf8 bytes[\s\S]*$/, "a line is not UTF-8; save the file as UTF-8"],
  // The patch as it is written, which is taken for the name of a file where it is no YAML.
  [/ with config: `(?:[\s\S]*`|[\s\S]*$)/, ""],
  [/ patch from \[(?:[\s\S]*\]|[\s\S]*$)/, " patch"],
  [/\bdecoding \[(?:[\s\S]*\]\s*:|[\s\S]*$)/, "decoding a JSON patch:"],
  [/evalsymlink failure on '[\s\S]*$/, "a patch that is written in place is no YAML of one object"],
  [/\bUnexpected kind: [\s\S]*$/, "a JSON patch has an op that is none"],
  [/unknown patch strategy '[\s\S]*$/, "unknown $patch"],
  // A text that begins as an alias, has a tag that does not fit, or stands in braces or brackets.
  [/unknown anchor '[\s\S]*' referenced/, "unknown anchor referenced; put what begins with * in quotes"],
  [/cannot decode (!!\w+) `[\s\S]*` as a (!!\w+)/, "cannot decode $1 as a $2"],
  [/invalid map key: .*/, "invalid map key; put what begins with a brace or a bracket in quotes"],
  // The texts where a replacement or a label does not fit, and a text that is too short for one.
  [/: node contents:[\s\S]*$/, ""],
  [/ out of bounds for value [\s\S]*$/, " out of bounds"],
  // All labels and annotations, the last configuration that was applied among them.
  [/( in object \{\{[^{}]*\} \{\{[^{}]*\}) map\[[\s\S]*\]\}\}/, "$1}}"],
  // Where it lies in memory, each time elsewhere.
  [/&yaml\.RNode\{[\s\S]*\} is/, "a value is"],
];

/** What kustomize said, without what it quotes. */
export function withoutQuoted(said: string): string {
  return quoted.reduce((text, [pattern, instead]) => text.replace(pattern, instead), said);
}
