/**
 * The scalar rules of sigs.k8s.io/yaml (on gopkg.in/yaml.v2), with which kubectl decodes manifests: YAML 1.1 booleans,
 * Go's integer literals, no sexagesimals, no dates. No preset of js-yaml has the same rules; see the golden table in
 * the tests.
 */
import {
  boolCoreTag,
  boolYaml11Tag,
  DUMP_SCHEMA,
  defineMappingTag,
  defineScalarTag,
  defineSequenceTag,
  FAILSAFE_SCHEMA,
  floatCoreTag,
  intCoreTag,
  mergeTag,
  NOT_RESOLVED,
  nullYaml11Tag,
} from "js-yaml";

const signs = ["-", "+"];
const digits = [..."0123456789"];
const never = (): boolean => false;

const maxUint64 = 18446744073709551615n;
const minInt64 = -9223372036854775808n;

/** The most digits of a binary literal that fits, apart from leading zeros. */
const maxDigits = 64;

/** The prefixes and digits of strconv.ParseInt with base 0, after the underscores are removed. */
const integerForms: readonly { readonly pattern: RegExp; readonly prefix: string }[] = [
  { pattern: /^0[bB]([01]+)$/, prefix: "0b" },
  { pattern: /^0[oO]([0-7]+)$/, prefix: "0o" },
  { pattern: /^0([0-7]+)$/, prefix: "0o" },
  { pattern: /^0[xX]([0-9a-fA-F]+)$/, prefix: "0x" },
  { pattern: /^(0|[1-9][0-9]*)$/, prefix: "" },
];

function resolveInteger(source: string): number | bigint | typeof NOT_RESOLVED {
  const plain = source.replaceAll("_", "");
  const negative = plain.startsWith("-");
  const magnitude = negative || plain.startsWith("+") ? plain.slice(1) : plain;
  for (const { pattern, prefix } of integerForms) {
    const literal = pattern.exec(magnitude)?.[1];
    if (literal === undefined) continue;
    // Reading a number takes more than linear time, and no integer of 64 bits has more digits.
    if (literal.length > maxDigits) return NOT_RESOLVED;
    const value = negative ? -BigInt(prefix + literal) : BigInt(prefix + literal);
    if (value > maxUint64 || value < minInt64) return NOT_RESOLVED;
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
  return NOT_RESOLVED;
}

const floatPattern = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;

/** The spellings of not-a-number and infinity. JSON has no such values. */
export const unsupportedFloat = /^(?:\.(?:nan|NaN|NAN)|[-+]?\.(?:inf|Inf|INF))$/;

function resolveFloat(source: string): number | typeof NOT_RESOLVED {
  const plain = source.replaceAll("_", "");
  if (!floatPattern.test(plain)) return NOT_RESOLVED;
  const value = Number(plain);
  // 1e400 is out of range in Go, which then keeps the text.
  return Number.isFinite(value) ? value : NOT_RESOLVED;
}

const intTag = defineScalarTag("tag:yaml.org,2002:int", {
  implicit: true,
  implicitFirstChars: [...signs, ...digits],
  resolve: resolveInteger,
  identify: never,
});

const floatTag = defineScalarTag("tag:yaml.org,2002:float", {
  implicit: true,
  implicitFirstChars: [...signs, ".", ...digits],
  resolve: (source, isExplicit) => {
    const integer = isExplicit ? resolveInteger(source) : NOT_RESOLVED;
    return integer === NOT_RESOLVED ? resolveFloat(source) : integer;
  },
  identify: never,
});

const base64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** `!!binary` becomes a string of the decoded bytes, read as UTF-8. */
const binaryTag = defineScalarTag("tag:yaml.org,2002:binary", {
  resolve: (source) => {
    const compact = source.replaceAll(/[\r\n]/g, "");
    if (compact.length % 4 !== 0 || !base64.test(compact)) return NOT_RESOLVED;
    return new TextDecoder().decode(Uint8Array.from(atob(compact), (character) => character.charCodeAt(0)));
  },
  identify: never,
});

/** Application tags have no meaning for Kubernetes. The node keeps its plain content, and a scalar keeps its text. */
const anyScalarTag = defineScalarTag("", {
  matchByTagPrefix: true,
  resolve: (source) => source,
  identify: never,
});

const anySequenceTag = defineSequenceTag("", {
  matchByTagPrefix: true,
  create: (): unknown[] => [],
  addItem: (items, item) => {
    items.push(item);
  },
  identify: never,
});

type Members = Record<string, unknown>;

const mapOptions = {
  create: (): Members => ({}),
  addPair: (members: Members, key: unknown, value: unknown): string => {
    if (key === null) return "unsupported map key: null; put it in quotes, or remove the line";
    if (typeof key === "object") return "unsupported map key: a list or a map; only scalars can be keys";
    Object.defineProperty(members, String(key), { value, enumerable: true, configurable: true, writable: true });
    return "";
  },
  has: (members: Members, key: unknown): boolean => typeof key !== "object" && Object.hasOwn(members, String(key)),
  keys: (members: Members) => Object.keys(members),
  get: (members: Members, key: unknown) => members[String(key)],
  identify: never,
};

const mapTag = defineMappingTag("tag:yaml.org,2002:map", mapOptions);
const anyMapTag = defineMappingTag("", { ...mapOptions, matchByTagPrefix: true });

const otherTags = [
  nullYaml11Tag,
  intTag,
  floatTag,
  mergeTag,
  binaryTag,
  mapTag,
  anyScalarTag,
  anySequenceTag,
  anyMapTag,
];

export const kubernetesSchema = FAILSAFE_SCHEMA.withTags(boolYaml11Tag, ...otherTags);

/** The rules with which kustomize reads files that are not kustomizations: `yes` is a string there. */
export const kyamlSchema = FAILSAFE_SCHEMA.withTags(boolCoreTag, ...otherTags);

/** For writing. A text that the rules above would read as another value is quoted. */
export const writtenSchema = DUMP_SCHEMA.withTags(
  boolYaml11Tag,
  nullYaml11Tag,
  {
    ...intTag,
    identify: (value: unknown) => typeof value === "bigint" || intCoreTag.identify(value),
    represent: (value: unknown) => String(value),
  },
  { ...floatTag, identify: floatCoreTag.identify, represent: floatCoreTag.represent },
);
