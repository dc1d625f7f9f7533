import * as z from "zod";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

export interface Provenance {
  readonly name: string;
  readonly version: string;
  /** Hexadecimal SHA-256 by the name of the file. */
  readonly files: ReadonlyMap<string, string>;
}

/** Between the chart's metadata and the checksums. */
const separator = "\n...\n";
const metadataSchema = z.object({ name: z.string(), version: z.coerce.string() });
const sumsSchema = z.object({ files: z.record(z.string(), z.string().regex(/^sha256:[0-9a-f]{64}$/)) });

/**
 * Reads the signed text of a provenance file, as `helm package --sign` writes it: what the chart says of itself, and the
 * checksums of its files.
 * @returns undefined when it has another form.
 */
export function readProvenance(text: string): Provenance | undefined {
  const [metadata, sums, ...more] = text.split(separator);
  if (metadata === undefined || sums === undefined || more.length > 0) return undefined;
  try {
    const { name, version } = metadataSchema.parse(yamlIn(metadata));
    const { files } = sumsSchema.parse(yamlIn(sums));
    const hex = Object.entries(files).map(([file, sum]) => [file, sum.slice("sha256:".length)] as const);
    return { name, version, files: new Map(hex) };
  } catch {
    return undefined;
  }
}

function yamlIn(text: string): unknown {
  const [only, ...others] = parseDocuments(text, "provenance");
  return others.length > 0 ? undefined : only?.value;
}
