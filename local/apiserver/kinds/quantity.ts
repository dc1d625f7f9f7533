const decimalSuffixes: readonly (readonly [string, bigint])[] = [
  ["E", 10n ** 27n],
  ["P", 10n ** 24n],
  ["T", 10n ** 21n],
  ["G", 10n ** 18n],
  ["M", 10n ** 15n],
  ["k", 10n ** 12n],
  ["", 10n ** 9n],
  ["m", 10n ** 6n],
  ["u", 10n ** 3n],
  ["n", 1n],
];
const nano = 10n ** 9n;
const binarySuffixes: readonly (readonly [string, bigint])[] = ["Ei", "Pi", "Ti", "Gi", "Mi", "Ki"].map(
  (suffix, index) => [suffix, nano * 1024n ** BigInt(6 - index)] as const,
);

const pattern = /^([+-]?)(\d*)(?:\.(\d*))?([EPTGMk]i|Ki|[numkMGTPE]|[eE][+-]?\d+)?$/;

/**
 * A quantity in canonical form, for example `1` for `1000m`: no fraction, and the largest suffix that keeps every digit
 * (apimachinery, resource.Quantity). The smallest unit is a nano; smaller amounts are rounded up. Undefined when the
 * text is not a quantity.
 */
export function canonicalQuantity(text: string): string | undefined {
  const match = pattern.exec(text);
  if (match === null) return undefined;
  const [, sign = "", whole = "", fraction = "", suffix = ""] = match;
  if (whole === "" && fraction === "") return undefined;
  const exponent = /^[eE]([+-]?\d+)$/.exec(suffix);
  const unit = exponent === null ? unitOf(suffix) : nano * 10n ** BigInt(Math.max(0, Number(exponent[1])));
  const shrink = exponent === null ? 1n : 10n ** BigInt(Math.max(0, -Number(exponent[1])));
  const scale = 10n ** BigInt(fraction.length) * shrink;
  const scaled = BigInt(whole + fraction) * unit;
  const nanos = scaled / scale + (scaled % scale === 0n ? 0n : 1n);
  const binary = suffix.endsWith("i") && nanos % nano === 0n && nanos >= 1024n * nano;
  if (exponent !== null) return sign.replace("+", "") + exponentForm(nanos);
  return (nanos === 0n ? "" : sign.replace("+", "")) + written(nanos, binary ? binarySuffixes : decimalSuffixes);
}

/** A quantity in nanos, for comparison; 0 when the text is not a quantity. */
export function quantityValue(text: string): bigint {
  const match = pattern.exec(text);
  if (match === null) return 0n;
  const [, sign = "", whole = "", fraction = "", suffix = ""] = match;
  const nanos = (BigInt(whole + fraction || "0") * unitOf(suffix)) / 10n ** BigInt(fraction.length);
  return sign === "-" ? -nanos : nanos;
}

function unitOf(suffix: string): bigint {
  const found = [...binarySuffixes, ...decimalSuffixes].find(([name]) => name === suffix);
  return found?.[1] ?? nano;
}

function written(nanos: bigint, suffixes: readonly (readonly [string, bigint])[]): string {
  if (nanos === 0n) return "0";
  for (const [suffix, unit] of suffixes) if (nanos % unit === 0n) return `${nanos / unit}${suffix}`;
  return written(nanos, decimalSuffixes);
}

function exponentForm(nanos: bigint): string {
  if (nanos === 0n || nanos % nano !== 0n) return written(nanos, decimalSuffixes);
  let value = nanos / nano;
  let power = 0;
  while (value % 1000n === 0n) {
    value /= 1000n;
    power += 3;
  }
  return power === 0 ? String(value) : `${value}e${power}`;
}
