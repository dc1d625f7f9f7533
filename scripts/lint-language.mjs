/**
 * `node scripts/lint-language.mjs`: refuses old words, sentences that begin without a subject, and names that stand twice.
 *
 *   --list [path]   prints every finding, or those of the files whose path begins so
 *   --shares        prints the share of such sentences for each folder and kind of text
 *   --lower         lowers the limits of scripts/language/limits.json to what is reached
 *   --root FOLDER   checks another repository
 *
 * CONTRIBUTING.md has the rules of writing, and scripts/language/table.mjs the exceptions.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { listFiles } from "./language/list-files.mjs";
import { findTwice } from "./language/names.mjs";
import { readSentences } from "./language/sentences.mjs";
import { readTexts } from "./language/texts.mjs";
import { findOldWords } from "./language/words.mjs";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    list: { type: "boolean" },
    shares: { type: "boolean" },
    lower: { type: "boolean" },
    root: { type: "string", default: fileURLToPath(new URL("..", import.meta.url)) },
  },
});
const limitsFile = join(options.root, "scripts", "language", "limits.json");
const kinds = ["comment", "doc", "adr", "message", "title"];
const faults = ["headless", "subjectless"];

const files = readFiles(options.root);
const shares = countSentences(files);
const oldWords = files.flatMap(({ path, content }) => findOldWords(path, content).map((each) => ({ path, ...each })));
const twice = findTwice(files.map(({ path, content }) => ({ path, exports: content.exports })));
/** A repository without limits is allowed nothing. */
const limits = existsSync(limitsFile) ? JSON.parse(readFileSync(limitsFile, "utf8")) : {};
const reached = summary();

if (options.list === true) list(positionals[0] ?? "");
else if (options.shares === true) printShares();
else if (options.lower === true) lower();
else process.exitCode = check();

/** The files that git knows or would add, read once. */
function readFiles(root) {
  return listFiles(root).map((path) => ({
    path,
    content: readTexts(path, () => readFileSync(join(root, path), "utf8")),
  }));
}
/** Counts the sentences of each folder and kind, and collects those with a fault. */
function countSentences(all) {
  const rows = new Map();
  for (const { path, content } of all) {
    for (const text of content.texts.filter(({ kind }) => kinds.includes(kind))) {
      const folder = path.includes("/") ? path.slice(0, path.indexOf("/")) : ".";
      const key = `${folder} ${text.kind}`;
      const row = rows.get(key) ?? { folder, kind: text.kind, count: 0, headless: [], subjectless: [] };
      rows.set(key, row);
      const sentences = readSentences(text);
      row.count += sentences.count;
      for (const fault of faults) {
        row[fault].push(...sentences[fault].map((sentence) => ({ path, line: text.line, sentence })));
      }
    }
  }
  return [...rows.values()];
}

function percent(rows, fault) {
  const count = rows.reduce((sum, row) => sum + row.count, 0);
  const faulty = rows.reduce((sum, row) => sum + row[fault].length, 0);
  return count === 0 ? 0 : Math.ceil((1000 * faulty) / count) / 10;
}

/** The numbers that limits.json limits, in its shape. */
function summary() {
  const perKind = (fault) =>
    Object.fromEntries(
      kinds.map((kind) => [
        kind,
        percent(
          shares.filter((row) => row.kind === kind),
          fault,
        ),
      ]),
    );
  const words = {};
  for (const { place, use } of oldWords) {
    words[use] ??= { identifier: 0, text: 0 };
    words[use][place] += 1;
  }
  return {
    headlessPercent: perKind("headless"),
    subjectlessPercent: perKind("subjectless"),
    oldWords: words,
    twice: { files: twice.files.length, exports: twice.exports.length },
  };
}

function check() {
  const over = compare(reached, limits).filter(({ value, limit }) => value > limit);
  for (const { name, value, limit } of over)
    console.error(`language: ${name} is ${value}; at most ${limit} is allowed`);
  if (over.length === 0) {
    const spoken = kinds.map((kind) => `${kind}s ${reached.headlessPercent[kind]} %`).join(", ");
    console.log(
      `language: within the limits of scripts/language/limits.json: headless sentences: ${spoken}; old words: ${oldWords.length}`,
    );
    return 0;
  }
  console.error("`node scripts/lint-language.mjs --list [path]` names them; CONTRIBUTING.md has the rules.");
  return 1;
}

/** Every number with its limit; a number without a limit may not be more than 0. */
function compare(values, allowed, name = "") {
  return Object.entries(values).flatMap(([key, value]) => {
    const at = name === "" ? key : `${name}.${key}`;
    return typeof value === "number"
      ? [{ name: at, value, limit: allowed?.[key] ?? 0 }]
      : compare(value, allowed?.[key], at);
  });
}

function list(start) {
  for (const fault of faults) {
    for (const { path, line, sentence } of shares
      .flatMap((row) => row[fault])
      .filter((each) => each.path.startsWith(start))) {
      console.log(`${path}:${line}: ${fault}: ${sentence}`);
    }
  }
  for (const { path, line, word, use, place } of oldWords.filter((each) => each.path.startsWith(start))) {
    console.log(`${path}:${line}: old word in ${place}: ${word}; use: ${use}`);
  }
  for (const { name, paths } of [...twice.files, ...twice.exports]) {
    if (paths.some((path) => path.startsWith(start))) console.log(`${paths.join(", ")}: stands twice: ${name}`);
  }
}

function printShares() {
  for (const row of shares.toSorted((a, b) => a.kind.localeCompare(b.kind) || a.folder.localeCompare(b.folder))) {
    const of = `${percent([row], "headless").toFixed(1)} % headless, ${percent([row], "subjectless").toFixed(1)} % subjectless`;
    console.log(`${row.kind.padEnd(8)} ${row.folder.padEnd(10)} ${of}, of ${row.count}`);
  }
  console.log(JSON.stringify(reached, null, 2));
}

function lower() {
  const smaller = (value, limit) =>
    typeof value === "number"
      ? Math.min(value, limit ?? 0)
      : Object.fromEntries(Object.entries(value).map(([key, each]) => [key, smaller(each, limit?.[key])]));
  writeFileSync(limitsFile, `${JSON.stringify(smaller(reached, limits), null, 2)}\n`);
}
