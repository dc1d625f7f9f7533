/**
 * Digests of an artifact's folders. The digest of a folder covers the files that the folder refers to outside of
 * itself: what a template takes from a repository that has many. The digests are made from bytes, because nothing of a
 * repository is parsed where it is fetched. Therefore a digest may cover too much, but never too little.
 */
import { digestOf, sha256 } from "#shared/base/digest.ts";
import { compareText } from "#shared/base/text-order.ts";
import { chartFile } from "#shared/source/helm/chart-folders.ts";
import { kustomizationNames } from "#shared/source/kustomization.ts";
import { isWithin, type ListedFile } from "#shared/source/tree-listing.ts";

/** By the folder's path, without the root. The digest of a missing folder is that of its parent. */
export type FolderDigests = Readonly<Record<string, string>>;

/** A Source's row, which DynamoDB limits to 400 KB, holds the digests. */
const maxCharacters = 100_000;
/** References of one folder. A folder with more of them has no digest, and its parent's counts. */
const maxOutside = 100;
const digestLength = 32;

interface Entry {
  readonly path: string;
  readonly digest: string;
  /** Whether the entry is a folder with kustomizations; false for a file. */
  readonly isKustomized: boolean;
  /**
   * Whether the content can refer to files outside of its folder. A file that is not a kustomization can do so for a
   * generator, relative to the kustomization's folder.
   */
  readonly mayLead: boolean;
  /** The paths outside of the folder that its kustomizations refer to; `unknown` when their bytes do not say. */
  readonly outside: readonly string[] | "unknown";
}

interface Folder {
  readonly files: Entry[];
  readonly folders: Map<string, Folder>;
}

export function folderDigests(files: readonly ListedFile[]): FolderDigests {
  const root: Folder = { files: [], folders: new Map() };
  const entries = new Map<string, Entry>();
  for (const file of files) {
    const parts = file.path.split("/").slice(0, -1);
    const entry = fileEntry(file);
    entries.set(file.path, entry);
    folderAt(root, parts).files.push(entry);
  }
  const charts = new Set<string>();
  addFolder(root, "", { entries, charts });
  const digests: Record<string, string> = {};
  let characters = 0;
  const known: Known = { entries, cut: new Set([...entries.keys()].flatMap((path) => cutShort(path) ?? [])) };
  const own = new Set(files.map(({ path }) => path));
  const isPart = (path: string) => path !== "" && !own.has(path);
  // Folders near the root come first. When there are too many folders, the digest of a folder's parent counts.
  const folders = [...entries.keys()].filter((path) => isPart(path) && !isInside(path, charts));
  for (const path of folders.sort((a, b) => depthOf(a) - depthOf(b) || compareText(a, b))) {
    const digest = partDigest(path, known);
    if (digest === undefined) continue;
    characters += path.length + digestLength;
    if (characters > maxCharacters) break;
    digests[path] = digest;
  }
  return digests;
}

/**
 * The digest of what a template takes: that of the folder, or of its nearest parent with a digest. Undefined means the
 * whole artifact.
 */
export function digestAt(path: string, folders: FolderDigests): string | undefined {
  for (let at = path; at !== "" && at !== "."; at = parentOf(at)) {
    if (Object.hasOwn(folders, at)) return folders[at];
  }
  return undefined;
}

function folderAt(root: Folder, parts: readonly string[]): Folder {
  let at = root;
  for (const name of parts) {
    const next: Folder = at.folders.get(name) ?? { files: [], folders: new Map() };
    at.folders.set(name, next);
    at = next;
  }
  return at;
}

interface Known {
  readonly entries: ReadonlyMap<string, Entry>;
  /** Paths at which a reference may be cut short, because the real name goes on with a character that ends a word. */
  readonly cut: ReadonlySet<string>;
}

interface Found {
  readonly entries: Map<string, Entry>;
  readonly charts: Set<string>;
}

/** Adds the inner folders first, because a folder's digest is made of theirs. */
function addFolder({ files, folders }: Folder, path: string, found: Found): Entry {
  const below = [...folders].map(([name, folder]) => addFolder(folder, path === "" ? name : `${path}/${name}`, found));
  const all = [...files, ...below].sort((a, b) => compareText(a.path, b.path));
  if (files.some((file) => nameOf(file.path) === chartFile)) found.charts.add(path);
  const outside = new Set<string>();
  let isKnown = true;
  for (const each of all) {
    if (each.outside === "unknown") isKnown = false;
    else for (const target of each.outside) if (path !== "" && !isWithin(target, [path])) outside.add(target);
  }
  const entry: Entry = {
    path,
    digest: digestOf(all.map((each) => [each.path, each.digest])),
    isKustomized: all.some(({ isKustomized }) => isKustomized),
    mayLead: all.some(({ mayLead }) => mayLead),
    outside: isKnown && outside.size <= maxOutside ? [...outside] : "unknown",
  };
  found.entries.set(path, entry);
  return entry;
}

function fileEntry({ path, executable, content }: ListedFile): Entry {
  const isKustomization = kustomizationNames.some((known) => known === nameOf(path));
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.length);
  return {
    path,
    digest: digestOf([executable, sha256(content)]),
    isKustomized: isKustomization,
    mayLead: !isKustomization && leads(bytes),
    outside: isKustomization ? outsideOf(path, bytes) : [],
  };
}

/** A segment `..`, or a YAML escape that could write one. */
const upwards = /(^|[^.\w])\.\.($|[^.\w])/;
const escapes = /\\(?:[xuU/]|\r?\n)/;

function leads(bytes: Buffer): boolean {
  if (!bytes.includes("..") && !bytes.includes("\\")) return false;
  const text = bytes.toString("latin1");
  return upwards.test(text) || escapes.test(text);
}

/** A path in YAML, if no name in it has a character that ends a word here. */
const words = /[^\s"'`,;=:[\]{}()<>|&*!]+/g;
const endOfWord = /[\s"'`,;=:[\]{}()<>|&*!]/;

/** The path up to the first character that ends a word, or undefined when its name has none. */
function cutShort(path: string): string | undefined {
  const at = nameOf(path).search(endOfWord);
  return at < 0 ? undefined : path.slice(0, path.length - nameOf(path).length + at);
}

/** Every word that looks like a path out of the kustomization's folder. */
function outsideOf(path: string, bytes: Buffer): readonly string[] | "unknown" {
  const text = bytes.toString("utf8");
  if (escapes.test(text)) return "unknown";
  const targets = new Set<string>();
  for (const [token] of text.matchAll(words)) {
    if (!upwards.test(token)) continue;
    const target = resolved(parentOf(path), token);
    if (target === undefined || targets.size >= maxOutside) return "unknown";
    targets.add(target);
  }
  return [...targets];
}

/** Undefined for the root itself and for paths outside of it. */
function resolved(folder: string, text: string): string | undefined {
  const parts = folder === "" ? [] : folder.split("/");
  for (const part of text.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  return parts.length === 0 ? undefined : parts.join("/");
}

/** Undefined when only the whole artifact surely contains everything that the path needs. */
function partDigest(path: string, known: Known): string | undefined {
  const parts = new Map<string, Entry>();
  const desired = [path];
  for (let next = desired.pop(); next !== undefined; next = desired.pop()) {
    const entry = next === path ? known.entries.get(path) : nearest(next, known);
    if (entry === undefined || parts.size > maxOutside) return undefined;
    if (parts.has(entry.path)) continue;
    parts.set(entry.path, entry);
    if (entry.outside === "unknown") return undefined;
    desired.push(...entry.outside);
  }
  const all = [...parts.values()];
  const isKustomized = all.length > 1 || all.some((entry) => entry.isKustomized);
  if (isKustomized && all.some(({ mayLead }) => mayLead)) return undefined;
  const listing = all.map((entry) => [entry.path, entry.digest]).sort(([a = ""], [b = ""]) => compareText(a, b));
  return digestOf(listing).slice("sha256:".length).slice(0, digestLength);
}

/** The entry at the path, or its nearest existing parent. A path that may be cut short counts as its parent. */
function nearest(path: string, { entries, cut }: Known): Entry | undefined {
  for (let at = path; at !== ""; at = parentOf(at)) {
    const entry = entries.get(at);
    if (entry !== undefined && !cut.has(at)) return entry;
  }
  return undefined;
}

function isInside(path: string, charts: ReadonlySet<string>): boolean {
  for (let at = parentOf(path); at !== ""; at = parentOf(at)) if (charts.has(at)) return true;
  return charts.has("");
}

function depthOf(path: string): number {
  return path.split("/").length;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
