import {
  boolYaml11Tag,
  defineScalarTag,
  FAILSAFE_SCHEMA,
  floatCoreTag,
  type LoadOptions,
  load,
  loadAll,
  mergeTag,
  NOT_RESOLVED,
  nullYaml11Tag,
} from "js-yaml";
import type { Json } from "#apiserver/json.ts";

const integer = /^([-+]?)(0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/;
const maxUint64 = 2n ** 64n - 1n;
const minInt64 = -(2n ** 63n);

/** Go's integers: 64 bits, and octal after a zero; what is larger is a float. */
const integerTag = defineScalarTag("tag:yaml.org,2002:int", {
  implicit: true,
  implicitFirstChars: [..."-+0123456789"],
  resolve: (source) => {
    const [, sign, digits = ""] = integer.exec(source.replaceAll("_", "")) ?? [];
    if (sign === undefined) return NOT_RESOLVED;
    const magnitude = BigInt(digits.replace(/^0(?=[0-7])/, "0o"));
    const value = sign === "-" ? -magnitude : magnitude;
    if (value > maxUint64 || value < minInt64) return NOT_RESOLVED;
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  },
  identify: () => false,
});

/** The scalars of sigs.k8s.io/yaml, as far as manifests need them: no dates, no sexagesimals. */
const options: LoadOptions = {
  schema: FAILSAFE_SCHEMA.withTags(boolYaml11Tag, nullYaml11Tag, integerTag, floatCoreTag, mergeTag),
  // So few cannot expand to much.
  maxAliases: 20,
};

/** The first document that holds something, null where none does. @throws YAMLException. */
export function parseYaml(text: string): Json {
  const documents = loadAll(text, options) as (Json | undefined)[];
  return documents.find((value) => value !== null && value !== undefined) ?? null;
}

/** The same for one document; the last of two equal keys wins. */
export function parseYamlWithDuplicates(text: string): Json {
  return load(text, { ...options, json: true }) as Json;
}
