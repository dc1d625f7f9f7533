/** The index of a Helm repository: the versions of one chart in it. */
import * as z from "zod";
import { defined } from "#shared/base/defined.ts";
import { errorMessage } from "#shared/base/errors.ts";
import { parseDocuments } from "#shared/source/yaml/yaml.ts";

/** Characters of an index that are parsed at once. */
const maxParsed = 32 * 1024 * 1024;

export interface ChartVersion {
  readonly version: string;
  /** Absolute, or relative to the index. */
  readonly url: string;
  /** Hexadecimal SHA-256 of the packed chart; some repositories leave it out. */
  readonly digest?: string;
  readonly appVersion?: string;
  readonly created?: string;
}

const entrySchema = z.object({
  version: z.string(),
  urls: z.array(z.string()).min(1),
  digest: z.string().optional(),
  appVersion: z.coerce.string().optional(),
  created: z.coerce.string().optional(),
});

/**
 * The versions of a chart. An index of 30 MB takes three seconds to parse; the part about one chart is cut out of the text
 * first, where the index is written as Helm writes it.
 * @returns the versions (none when the index has no such chart), or what is wrong with the index.
 */
export function chartVersions(text: string, chart: string): readonly ChartVersion[] | string {
  const entries = entriesIn(text, chart);
  if (typeof entries === "string") return entries;
  if (typeof entries !== "object" || entries === null) return "has no entries";
  const own = Object.hasOwn(entries, chart) ? (entries as Record<string, unknown>)[chart] : [];
  if (!Array.isArray(own)) return `has no list of versions for ${chart}`;
  return own.flatMap((entry): readonly ChartVersion[] => {
    const parsed = entrySchema.safeParse(entry);
    if (!parsed.success) return [];
    const { version, urls, digest, appVersion, created } = parsed.data;
    const [url = ""] = urls;
    const [hex] = /[0-9a-f]{64}$/.exec(digest ?? "") ?? [];
    return [{ version, url, ...defined({ digest: hex, appVersion, created }) }];
  });
}

/**
 * The address of a packed chart that an index names, absolute or relative to the index.
 * @returns undefined for what is not fetched: no URL, another scheme, or `http` from an index that came by `https`.
 */
export function chartUrl(named: string, index: string): string | undefined {
  const url = URL.canParse(named, index) ? new URL(named, index) : undefined;
  const isFetched = url?.protocol === "https:" || (url?.protocol === "http:" && index.startsWith("http:"));
  return isFetched ? url?.href : undefined;
}

/** The member `entries`, or its part about one chart. */
function entriesIn(text: string, chart: string): unknown {
  const part = partAbout(`\n${text}`, chart);
  const whole = part ?? text;
  if (whole.length > maxParsed) {
    return `is not written as Helm writes it, and its ${whole.length} characters are too many to read as a whole`;
  }
  try {
    const index: unknown = text.startsWith("{") ? JSON.parse(text) : parseDocuments(whole, "index.yaml")[0]?.value;
    return (index as { entries?: unknown } | undefined)?.entries;
  } catch (error) {
    return `cannot be read: ${errorMessage(error)}`;
  }
}

/** Helm indents the names of charts by two spaces, and what belongs to a chart further, or as a list. */
function partAbout(text: string, chart: string): string | undefined {
  const entries = text.indexOf("\nentries:\n");
  const name = `\n  ${chart}:\n`;
  const from = entries === -1 ? -1 : text.indexOf(name, entries);
  if (from === -1 || text.includes(name, from + 1)) return undefined;
  const next = /\n(?: {2}[^\s#-]|[^\s#])/g;
  next.lastIndex = from + name.length - 1;
  const to = next.exec(text)?.index ?? text.length;
  return `entries:${text.slice(from, to)}\n`;
}
