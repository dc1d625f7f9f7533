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

/** Integers as Go reads them: 64 bits, octal after a leading zero. A larger number is a float. */
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

/** The scalars of sigs.k8s.io/yaml that manifests need. Dates and sexagesimal numbers are left out. */
const options: LoadOptions = {
  schema: FAILSAFE_SCHEMA.withTags(boolYaml11Tag, nullYaml11Tag, integerTag, floatCoreTag, mergeTag),
  // A document with so few aliases cannot expand to a huge one.
  maxAliases: 20,
};

/** The first document with content; null where there is none. @throws YAMLException. */
export function parseYaml(text: string): Json {
  const documents = loadAll(text, options) as (Json | undefined)[];
  return documents.find((value) => value !== null && value !== undefined) ?? null;
}

/** Like `parseYaml`, for one document. The last of two equal keys wins. */
export function parseYamlWithDuplicates(text: string): Json {
  return load(text, { ...options, json: true }) as Json;
}
