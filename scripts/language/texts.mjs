/**
 * Reads a file into the texts that people read. Each text has a kind (comment, doc, adr, message, title or string), the line where
 * it starts, and its words in one line. A string is what has too few words for a message, and is read for old words only. A source also gives its identifiers and the names that it exports.
 */
import { parseSync, Visitor } from "oxc-parser";

/** A message has at least this many words; shorter strings are names, keys and values. */
const leastMessageWords = 5;
const messageFolders = ["functions", "shared", "cli", "infra", "local"];
/** Stands for what a template puts in: it keeps the place of a word. */
const placeholder = "X";
const testCalls = new Set(["it", "test", "describe"]);

/** docs/messages.md is made of the messages, which are checked where they are written. */
const ownText = /^(?!LICENSE|package-lock|test\/fixtures\/|docs\/messages\.md)/;

/** The texts of one file, `read` when it is a source, a page or a file with comments. */
export function readTexts(path, read) {
  if (!ownText.test(path)) return { texts: [], identifiers: [], exports: [] };
  if (/\.(ts|mjs)$/.test(path)) return readSource(path, read());
  if (path.endsWith(".md")) return { texts: pageTexts(path, read()), identifiers: [], exports: [] };
  if (/\.(ya?ml|tf|sh|tpl)$/.test(path) || path.startsWith(".ci/")) {
    return { texts: hashComments(read()), identifiers: [], exports: [] };
  }
  return { texts: [], identifiers: [], exports: [] };
}

function readSource(path, content) {
  const { program, comments, module, errors } = parseSync(path, content);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0].message}`);
  const lineAt = lineFinder(content);
  const place = (texts) => texts.map(({ start, ...text }) => ({ ...text, line: lineAt(start) }));
  const { literals, identifiers } = visit(program, messageFolders.includes(path.split("/")[0]));
  return {
    texts: place([...commentTexts(content, comments), ...literals]),
    identifiers: place(identifiers),
    exports: place(exportedNames(module)),
  };
}

/** Re-exports under the same name are left out: they are the same thing. */
function exportedNames({ staticExports }) {
  return staticExports
    .flatMap(({ entries }) => entries)
    .filter(({ exportName, importName }) => exportName.name !== null && exportName.name !== importName.name)
    .map(({ exportName }) => ({ name: exportName.name, start: exportName.start }));
}

/** A run of line comments is one text, and so is a paragraph of a block comment. */
function commentTexts(content, comments) {
  const texts = [];
  let run;
  for (const { type, value, start, end } of comments) {
    if (type === "Line") {
      const follows = run !== undefined && /^\s*$/.test(content.slice(run.end, start));
      if (follows) {
        run.text += ` ${value.trim()}`;
        run.end = end;
      } else {
        run = { kind: "comment", text: value.trim(), start, end };
        texts.push(run);
      }
    } else {
      run = undefined;
      texts.push(...blockTexts(value, start + 2));
    }
  }
  return texts.map(({ end: _, ...text }) => text);
}

function blockTexts(value, start) {
  const lines = value.split("\n").map((line) => line.replace(/^\s*\*?\s?/, ""));
  let offset = start;
  const placed = value.split("\n").map((raw, index) => {
    const at = offset;
    offset += raw.length + 1;
    return { line: lines[index], at };
  });
  return paragraphs(placed).map(({ text, at }) => ({ kind: "comment", text, start: at }));
}

/** Joins lines into paragraphs; an empty line and a list's mark begin a new one. */
function paragraphs(lines) {
  const found = [];
  let open;
  for (const { line, at } of lines) {
    const item = /^\s*(?:[-*+]|\d+[.)])\s+(?=\S)/.exec(line);
    if (line.trim() === "") open = undefined;
    else if (open === undefined || item !== null || /^\s*@\w/.test(line)) {
      open = { text: line.slice(item?.[0].length ?? 0).trim(), at };
      found.push(open);
    } else open.text += ` ${line.trim()}`;
  }
  return found;
}

function visit(program, withMessages) {
  const literals = [];
  const identifiers = [];
  const addIdentifier = ({ name, start }) => void identifiers.push({ name, start });
  const onLiteral = (node, taken) => {
    const text = literalText(node, taken);
    if (text === undefined) return;
    const isMessage = withMessages && wordCount(text) >= leastMessageWords;
    literals.push({ kind: isMessage ? "message" : "string", text, start: node.start });
  };
  eachLiteral(program, onLiteral, (taken) => ({
    CallExpression(node) {
      const [first] = node.arguments;
      if (first === undefined || !isTestCall(node.callee)) return;
      const text = literalText(first, taken);
      if (text !== undefined) literals.push({ kind: "title", text, start: first.start });
    },
    Identifier: addIdentifier,
    PrivateIdentifier: addIdentifier,
  }));
  return { literals, identifiers };
}

/**
 * Calls `onLiteral` for each string, template or sum of the program, except the paths of imports and the parts of a larger
 * one. `taken` has the nodes that are done. `others` gives further functions of the visitor.
 */
export function eachLiteral(program, onLiteral, others = () => ({})) {
  const taken = new Set();
  const add = (node) => {
    if (!taken.has(node)) onLiteral(node, taken);
  };
  new Visitor({
    ImportDeclaration: ({ source }) => void taken.add(source),
    TSLiteralType: ({ literal }) => void taken.add(literal),
    BinaryExpression: add,
    Literal: add,
    TemplateLiteral: add,
    ...others(taken),
  }).visit(program);
}

/**
 * The text of a string, of a template, or of several of them added up; marks its parts as taken. `nameOf` gives what stands
 * for an expression of a template.
 */
export function literalText(node, taken, nameOf = () => placeholder) {
  if (node.type === "Literal" && typeof node.value === "string") {
    taken.add(node);
    return oneLine(node.value);
  }
  if (node.type === "TemplateLiteral") {
    taken.add(node);
    const parts = node.quasis.map(({ value }) => value.cooked ?? value.raw);
    return oneLine(parts.reduce((text, part, index) => `${text}${nameOf(node.expressions[index - 1])}${part}`));
  }
  if (node.type !== "BinaryExpression" || node.operator !== "+") return undefined;
  const left = literalText(node.left, taken, nameOf);
  const right = literalText(node.right, taken, nameOf);
  if (left === undefined && right === undefined) return undefined;
  taken.add(node);
  return oneLine(`${left ?? nameOf(node.left)} ${right ?? nameOf(node.right)}`);
}

/** `it(...)`, `it.skip(...)`, `it.each(...)(...)` and the same of test and describe. */
function isTestCall(callee) {
  if (callee.type === "Identifier") return testCalls.has(callee.name);
  if (callee.type === "MemberExpression") return isTestCall(callee.object);
  return callee.type === "CallExpression" && callee.callee.type === "MemberExpression" && isTestCall(callee.callee);
}

function pageTexts(path, content) {
  const kind = path.includes("/adr/") ? "adr" : "doc";
  let fenced = false;
  const lines = [];
  const cells = [];
  const rest = [];
  for (const [index, raw] of content.split("\n").entries()) {
    const line = raw.replace(/^\s*>\s?/, "");
    if (/^\s*(```|~~~)/.test(line)) fenced = !fenced;
    const isText = !fenced && !/^\s*(```|~~~|#|<!--)/.test(line);
    if (isText && /^\s*\|/.test(line)) {
      for (const cell of line.split("|")) cells.push({ kind, text: oneLine(cell), line: index + 1 });
    }
    if (!isText) rest.push({ kind: "string", text: line, line: index + 1 });
    lines.push({ line: isText && !/^\s*\|/.test(line) ? line : "", at: index + 1 });
  }
  const prose = paragraphs(lines).map(({ text, at }) => ({ kind, text: oneLine(text), line: at }));
  return [...prose, ...cells.filter(({ text }) => wordCount(text) > 0), ...rest];
}

/** The comments of YAML, shell and Terraform. */
function hashComments(content) {
  const lines = content.split("\n").map((raw, index) => ({
    line: /^\s*#(?!!)\s?(.*)$/.exec(raw)?.[1] ?? "",
    at: index + 1,
  }));
  return paragraphs(lines).map(({ text, at }) => ({ kind: "comment", text: oneLine(text), line: at }));
}

function lineFinder(content) {
  const starts = [0];
  for (let at = content.indexOf("\n"); at !== -1; at = content.indexOf("\n", at + 1)) starts.push(at + 1);
  return (offset) => {
    let low = 0;
    let high = starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (starts[middle] <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  };
}

function oneLine(text) {
  return text.replace(/\s+/g, " ").trim();
}

export function wordCount(text) {
  return text === "" ? 0 : text.split(/\s+/).length;
}
